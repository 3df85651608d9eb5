// Keras's CosineDecayRestarts (keras/src/optimizers/schedules/learning_rate_schedule.py):
//   initial_learning_rate ((1 - alpha) m_mul^i (1 + cos(pi p)) / 2 + alpha)
// where p is the elapsed part of period i. The first period has first_decay_steps; each other one
// is t_mul times as long as the one before.
#include <cmath>
#include <numbers>

#include "common/optimizer/schedules/schedule.h"

namespace shoal {

// A fraction of a period. Anything closer to its end counts as the beginning of the next period.
constexpr double kRounding = 1e-9;

Schedule MakeCosineDecayRestarts(KerasOptions& options) {
  const double initial = options.RequiredNumber("initial_learning_rate", kScheduledRate);
  const double first = options.RequiredNumber("first_decay_steps", kSomeUpdates);
  const double t_mul = options.Number("t_mul", 2, {.min = 1, .max = 1000});
  const double m_mul = options.Number("m_mul", 1, {.min = 0, .max = 1000});
  const double alpha = options.Number("alpha", 0, {.min = 0, .max = 1});
  return [=](double updates) {
    const double firsts = updates / first;
    double period = std::floor(firsts);
    double p = firsts - period;
    if (t_mul != 1) {
      const auto part_of = [&](double number) {
        const double length = std::pow(t_mul, number);
        return (firsts - (length - 1) / (t_mul - 1)) / length;
      };
      period = std::floor(std::log(1 + firsts * (t_mul - 1)) / std::log(t_mul));
      p = part_of(period);
      // Rounding may make the logarithm at a restart too small.
      if (p > 1 - kRounding) p = part_of(++period);
    }
    const double cosine = 0.5 * std::pow(m_mul, period) * (1 + std::cos(std::numbers::pi * p));
    return initial * ((1 - alpha) * cosine + alpha);
  };
}

}  // namespace shoal
