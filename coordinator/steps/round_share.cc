#include "coordinator/steps/round_share.h"

#include <algorithm>
#include <cmath>

namespace shoal {
namespace {

// Equal times must not count as different ones. Otherwise each of two workers would be passed over
// in favor of the other.
constexpr double kRounding = 1e-6;

// Returns the steps that the worker would do in less than `seconds`, beyond those that it holds.
double StepsWithin(const Backlog& worker, double seconds) {
  if (worker.step_seconds <= 0) return 0;
  const double steps = (seconds - worker.seconds) / worker.step_seconds;
  return std::max(std::ceil(steps - kRounding) - 1, 0.0);
}

}  // namespace

uint64_t ShareOfRound(const Backlog& worker, const std::vector<Backlog>& others, uint64_t wanted,
                      uint64_t left) {
  wanted = std::min(wanted, left);
  if (worker.step_seconds <= 0) return wanted;
  uint64_t share = 0;
  for (; share < wanted; ++share) {
    const double done_at = worker.seconds + static_cast<double>(share + 1) * worker.step_seconds;
    double by_others = 0;
    for (const Backlog& other : others) by_others += StepsWithin(other, done_at);
    if (by_others >= static_cast<double>(left - share)) break;
  }
  return share;
}

}  // namespace shoal
