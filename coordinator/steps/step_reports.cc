#include "coordinator/steps/step_reports.h"

#include <set>

namespace shoal {
namespace {

// Remembers the reporters of at most this many steps. The coordinator asks each ps every second.
constexpr size_t kMaxReporters = 1 << 16;

}  // namespace

void StepReports::Add(uint64_t step, StepDispatcher::WorkerKey reporter) {
  reporters_[step] = reporter;
  if (reporters_.size() > kMaxReporters) reporters_.erase(reporters_.begin());
}

StepReports::Lack StepReports::LackOf(const proto::Claimed& claimed, uint64_t done,
                                      uint64_t window_steps) const {
  Lack lack;
  if (claimed.base() >= done) return lack;
  const std::set<uint64_t> applied(claimed.applied_after_base().begin(),
                                   claimed.applied_after_base().end());
  const auto end = reporters_.lower_bound(done);
  for (auto each = reporters_.lower_bound(claimed.base()); each != end; ++each) {
    if (!applied.contains(each->first)) lack.reporters.try_emplace(each->second, each->first);
  }
  lack.unnamed = done - claimed.base() > window_steps;
  if (lack.unnamed) return lack;
  for (uint64_t step = claimed.base(); step < done; ++step) {
    if (!applied.contains(step)) lack.steps.push_back(step);
  }
  return lack;
}

}  // namespace shoal
