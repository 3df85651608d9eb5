// Keras's PolynomialDecay (keras/src/optimizers/schedules/learning_rate_schedule.py):
//   (initial_learning_rate - end_learning_rate)(1 - p)^power + end_learning_rate
// with p = min(updates, decay_steps) / decay_steps. With `cycle`, p = updates / d, where d is the
// first multiple of decay_steps that is not below `updates`.
#include <algorithm>
#include <cmath>

#include "common/optimizer/schedules/schedule.h"

namespace shoal {

Schedule MakePolynomialDecay(KerasOptions& options) {
  const double initial = options.RequiredNumber("initial_learning_rate", kScheduledRate);
  const double steps = options.RequiredNumber("decay_steps", kSomeUpdates);
  const double end = options.Number("end_learning_rate", 0.0001, kScheduledRate);
  const double power = options.Number("power", 1, {.min = 0, .max = 1000});
  const bool cycle = options.Flag("cycle", false);
  return [=](double updates) {
    const double p = cycle ? updates / (steps * std::max(1.0, std::ceil(updates / steps)))
                           : std::min(updates, steps) / steps;
    return (initial - end) * std::pow(std::max(0.0, 1 - p), power) + end;
  };
}

}  // namespace shoal
