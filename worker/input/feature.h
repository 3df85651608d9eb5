#pragma once

#include <cstdint>
#include <string>

#include "common/base/shape.h"

namespace shoal {

// What the values of a feature are. All are held as float32, as everything is that is computed
// with: of integers those up to 2^24, of either sign, and others are refused where they are read.
enum class FeatureType {
  kFloat,
  kInteger,
  kWeight,  // no input: what an example counts, finite and not negative; the last feature
};

// One input of a model, and what an example has for it.
struct Feature {
  std::string name;  // of the model's input
  Shape shape;       // without the batch axis
  FeatureType type = FeatureType::kFloat;
  int64_t below = 0;  // of integers that number something: how many there are; 0: any integer
};

}  // namespace shoal
