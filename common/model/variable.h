#pragma once

#include <string>

#include "common/base/shape.h"
#include "common/model/initializer.h"
#include "common/model/regularizer.h"

namespace shoal {

// How a variable gets its next value from the value that a step pushes. Under every rule, a pushed
// value is applied exactly once and is part of the cut.
enum class UpdateRule {
  kOptimizer,      // by the optimizer, from the gradient; only these have slots
  kMovingAverage,  // by UpdateMovingAverage(), from the step's sample of its batch
  kFrozen,         // never: keeps its first value; no step pushes it
};

// A named float32 tensor of the model. Its name is Keras's path without the outer model's name:
// "conv2d/kernel".
struct Variable {
  std::string name;
  Shape shape = {};  // all extents known
  UpdateRule rule = UpdateRule::kOptimizer;
  double momentum = 0;  // for kMovingAverage
  Initializer initializer = {};
  Regularizer regularizer = {};  // for kOptimizer

  bool pushed() const { return rule != UpdateRule::kFrozen; }
  bool has_slots() const { return rule == UpdateRule::kOptimizer; }
};

}  // namespace shoal
