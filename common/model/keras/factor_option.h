#pragma once

#include <string>

#include "common/model/keras/layer_options.h"
#include "common/model/ops/random_uniform.h"

namespace shoal {

// What a factor of a layer that augments images may be.
struct FactorRule {
  double min = 0;
  double max = 1;
  bool above_min = false;  // not `min` itself
  // Of a list [low, high], Keras asks for some layers only that it reaches into the range.
  bool list_may_exceed = false;
};

// The option `key`: a list of two numbers, in any order, or one number for both sides of 0, as far
// as the rule goes. Must be there.
RandomUniformOp::Range ReadFactor(LayerOptions& options, const std::string& key,
                                  const FactorRule& rule);

// The option "value_range", a list of two numbers: 0 to 255 where there is none.
RandomUniformOp::Range ReadValueRange(LayerOptions& options);

}  // namespace shoal
