#include "coordinator/steps/staleness_bound.h"

namespace shoal {

// A step that came back is out already, and all later leases have counted it.
bool StalenessBound::MayLease(const Candidate& candidate) const {
  if (candidate.came_back || out_.empty()) return true;
  // Updates that a chunk may get between pull and push of the oldest lease. Counts all steps ever
  // out, minus those done before that lease and its own step, plus the candidate.
  const uint64_t of_oldest = begun_ - done_before_.begin()->second;
  return out_.size() <= max_ && of_oldest <= max_;
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
