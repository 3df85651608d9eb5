// Keras's ExponentialDecay (keras/src/optimizers/schedules/learning_rate_schedule.py):
//   initial_learning_rate decay_rate^p  with  p = updates / decay_steps, rounded down if staircase.
#include <cmath>

#include "common/optimizer/schedules/schedule.h"

namespace shoal {

Schedule MakeExponentialDecay(KerasOptions& options) {
  const double initial = options.RequiredNumber("initial_learning_rate", kScheduledRate);
  const double steps = options.RequiredNumber("decay_steps", kSomeUpdates);
  const double rate = options.RequiredNumber("decay_rate", {.min = 0, .max = 1000});
  const bool staircase = options.Flag("staircase", false);
  return [=](double updates) {
    const double p = updates / steps;
    return initial * std::pow(rate, staircase ? std::floor(p) : p);
  };
}

}  // namespace shoal
