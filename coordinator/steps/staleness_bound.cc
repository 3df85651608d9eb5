#include "coordinator/steps/staleness_bound.h"

namespace shoal {

// What came back is out already, and was counted with all others that are.
bool StalenessBound::MayLease(const Candidate& candidate) const {
  if (candidate.came_back || out_.empty()) return true;
  // All that were ever out, but for those done before and the oldest lease itself, and this one.
  const uint64_t of_oldest = begun_ - done_before_.begin()->second;
  return out_.size() <= most_ && of_oldest <= most_;
}

void StalenessBound::Leased(uint64_t step) {
  const auto [lease, is_new] = out_.try_emplace(step, 0);
  if (is_new) {
    ++begun_;
  } else {
    done_before_.erase(lease->second);
  }
  lease->second = ++leases_;
  done_before_[leases_] = done_;
}

void StalenessBound::Done(uint64_t step) {
  const auto lease = out_.extract(step);
  if (!lease) return;
  done_before_.erase(lease.mapped());
  ++done_;
}

}  // namespace shoal
