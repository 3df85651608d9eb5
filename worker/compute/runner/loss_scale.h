#pragma once

#include <algorithm>

namespace shoal {

// The factor of the loss before its gradients are computed in float16, in which small gradients
// would become 0. It is as large as the gradients allow, by the rules of Keras's LossScaleOptimizer
// (keras/src/optimizers/loss_scale_optimizer.py), with two differences: it stays finite, and it
// never falls below 1, because then the scale is not the cause of an overflow. It is a power of
// two, so that multiplying and dividing by it is exact. Plain state; not thread-safe.
class LossScale {
 public:
  static constexpr float kFirst = 0x1p15f;
  static constexpr float kMax = 0x1p127f;
  static constexpr int kGrowthSteps = 2000;

  float value() const { return value_; }

  // The gradient computed with this scale is finite.
  void NoteFinite() {
    if (++finite_steps_ < kGrowthSteps) return;
    finite_steps_ = 0;
    value_ = std::min(2 * value_, kMax);
  }
  // The gradient is not finite; the caller drops it.
  void NoteOverflow() {
    finite_steps_ = 0;
    value_ = std::max(value_ / 2, 1.0f);
  }

 private:
  float value_ = kFirst;
  int finite_steps_ = 0;  // in a row
};

}  // namespace shoal
