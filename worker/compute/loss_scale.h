#pragma once

#include <algorithm>

namespace shoal {

// What the loss is multiplied by before its gradients are taken in float16, of which small ones
// would be 0: as large as they allow, by the rules of Keras's LossScaleOptimizer
// (keras/src/optimizers/loss_scale_optimizer.py), but that it stays finite and never falls below 1,
// where it is not the scale that is too large. A power of two, so that to multiply by it and to
// divide by it changes no digit. Plain state; not thread-safe.
class LossScale {
 public:
  static constexpr float kFirst = 0x1p15f;
  static constexpr float kMost = 0x1p127f;
  static constexpr int kGrowthSteps = 2000;

  float value() const { return value_; }

  // The gradient that was computed with it is finite.
  void NoteFinite() {
    if (++finite_steps_ < kGrowthSteps) return;
    finite_steps_ = 0;
    value_ = std::min(2 * value_, kMost);
  }
  // It is not, and is to be dropped.
  void NoteOverflow() {
    finite_steps_ = 0;
    value_ = std::max(value_ / 2, 1.0f);
  }

 private:
  float value_ = kFirst;
  int finite_steps_ = 0;  // in a row
};

}  // namespace shoal
