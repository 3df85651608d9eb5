#pragma once

#include <string>

#include "common/model/keras/options/layer_options.h"
#include "common/model/ops/random_uniform.h"

namespace shoal {

// The allowed values for a factor of a layer that augments images.
struct FactorRule {
  double min = 0;
  double max = 1;
  bool above_min = false;  // excludes `min` itself
  // Accepts a list [low, high] that only overlaps the range, as Keras does for some layers.
  bool list_may_exceed = false;
};

// Reads the option `key`: a list of two numbers, in any order, or one number f for the range [-f,
// f], cut off at rule.min. Requires the option.
RandomUniformOp::Range ReadFactor(LayerOptions& options, const std::string& key,
                                  const FactorRule& rule);

// Reads the option "value_range", a list of two numbers. The default is 0 to 255.
RandomUniformOp::Range ReadValueRange(LayerOptions& options);

}  // namespace shoal
