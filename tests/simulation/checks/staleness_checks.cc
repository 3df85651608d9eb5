#include "tests/simulation/checks/staleness_checks.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/parameter_server.pb.h"
#include "proto/worker.pb.h"

namespace shoal {
namespace {

// Returns whether one coordinator leads the run from beginning to end.
bool CoordinatorStays(const std::vector<Fault>& faults) {
  using Kind = Fault::Kind;
  return std::none_of(faults.begin(), faults.end(), [](const Fault& fault) {
    if (fault.kind == Kind::kPowerLoss || fault.kind == Kind::kRestartAll ||
        fault.kind == Kind::kChangeJob || fault.kind == Kind::kDrainAll) {
      return true;
    }
    const bool ends = fault.kind == Kind::kKill || fault.kind == Kind::kKillAfterCallbacks ||
                      fault.kind == Kind::kKillAtFileOperation || fault.kind == Kind::kReplace ||
                      fault.kind == Kind::kSecond || fault.kind == Kind::kDrain;
    return ends && fault.task == "chief";
  });
}

}  // namespace

void StalenessChecks::OnLease(const proto::Lease& lease) {
  for (uint64_t i = 0; i < lease.count(); ++i) ++leases_[{lease.timeline(), lease.first() + i}];
}

void StalenessChecks::OnApplied(const std::string& ps, const proto::Applied& applied) {
  const std::optional<uint64_t>& bound = job_.workload().job.strategy.max_staleness;
  if (!bound.has_value() || applied.staleness() <= *bound ||
      !CoordinatorStays(job_.workload().faults))
    return;
  if (leases_[{applied.timeline(), applied.step()}] != 1) return;
  world_.Fail(absl::StrCat(ps, " applies step ", applied.step(), " to chunk ", applied.chunk(),
                           ", which has had ", applied.staleness(),
                           " updates since it was pulled, where ", *bound, " are allowed"));
}

}  // namespace shoal
