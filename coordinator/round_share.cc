#include "coordinator/round_share.h"

#include <algorithm>
#include <cmath>

namespace shoal {
namespace {

// Steps that the worker would have done in less than so many seconds, beyond what it has.
double StepsWithin(const Backlog& worker, double seconds) {
  if (worker.step_seconds <= 0) return 0;
  return std::max(std::ceil((seconds - worker.seconds) / worker.step_seconds) - 1, 0.0);
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
