#include "common/step_plan/step_plan.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"

namespace shoal {
namespace {

// Quotient rounded up, without the overflow of a + b - 1.
uint64_t DivideRoundingUp(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

uint64_t SaturatingMultiply(uint64_t a, uint64_t b) {
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<uint64_t>::max() : product;
}

}  // namespace

StepPlan::StepPlan(uint64_t examples, uint64_t batch_size, uint64_t epochs, uint64_t steps)
    : examples_(examples), batch_size_(batch_size) {
  SHOAL_CHECK(examples > 0 && batch_size > 0 && (epochs == 0) != (steps == 0),
              "examples=", examples, ", batch_size=", batch_size, ", epochs=", epochs,
              ", steps=", steps);
  steps_per_epoch_ = DivideRoundingUp(examples, batch_size);
  total_steps_ = steps != 0 ? steps : SaturatingMultiply(epochs, steps_per_epoch_);
}

uint64_t StepPlan::epochs() const { return DivideRoundingUp(total_steps_, steps_per_epoch_); }

uint64_t StepPlan::EpochEnd(uint64_t epoch) const {
  if (epoch >= epochs()) return total_steps_;
  return std::min(total_steps_, SaturatingMultiply(epoch + 1, steps_per_epoch_));
}

StepRange StepPlan::Range(uint64_t step) const {
  const uint64_t first = step % steps_per_epoch_ * batch_size_;
  return {
      .epoch = EpochOf(step), .first = first, .count = std::min(batch_size_, examples_ - first)};
}

}  // namespace shoal
