#pragma once

#include <string>

#include "common/base/shape.h"
#include "common/model/initializer.h"
#include "common/model/regularizer.h"

namespace shoal {

// How a variable gets its next value from what a step pushes for it. What is pushed is applied
// exactly once and lies in the cut, whatever the rule.
enum class UpdateRule {
  kOptimizer,      // by the optimizer, from the gradient; the only ones with slots
  kMovingAverage,  // UpdateMovingAverage, from the sample that the step takes of its batch
  kFrozen,         // never: it keeps its first value, and nothing is pushed
};

// A named float32 tensor of the model. Its name is Keras's path with the outer model's name left
// out: "conv2d/kernel".
struct Variable {
  std::string name;
  Shape shape = {};  // all extents known
  UpdateRule rule = UpdateRule::kOptimizer;
  double momentum = 0;  // of a moving average
  Initializer initializer = {};
  Regularizer regularizer = {};  // of one that the optimizer updates

  bool pushed() const { return rule != UpdateRule::kFrozen; }
  bool has_slots() const { return rule == UpdateRule::kOptimizer; }
};

}  // namespace shoal
