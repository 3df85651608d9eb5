// Keras's CosineDecay (keras/src/optimizers/schedules/learning_rate_schedule.py):
//   from ((1 - alpha) (1 + cos(pi p)) / 2 + alpha)  with  p = min(updates, decay_steps) /
//   decay_steps,  from = initial_learning_rate.
// With warmup_target, the rate grows linearly from initial_learning_rate to warmup_target in the
// first warmup_steps. The decay begins there, with from = warmup_target.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/optimizer/schedules/schedule.h"

namespace shoal {

Schedule MakeCosineDecay(KerasOptions& options) {
  const double initial = options.RequiredNumber("initial_learning_rate", kScheduledRate);
  const double steps = options.RequiredNumber("decay_steps", kSomeUpdates);
  const double alpha = options.Number("alpha", 0, {.min = 0, .max = 1});
  const auto target = options.NumberOrNull("warmup_target", {}, kScheduledRate);
  const double warmup = options.Number("warmup_steps", 0, kUpdates);
  return [=](double updates) {
    if (target.has_value()) {
      if (updates < warmup) return initial + (*target - initial) * (updates / warmup);
      updates -= warmup;
    }
    const double p = std::min(updates, steps) / steps;
    const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * p));
    return target.value_or(initial) * ((1 - alpha) * cosine + alpha);
  };
}

}  // namespace shoal
