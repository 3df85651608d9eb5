#include "coordinator/lease_rule.h"

#include "coordinator/round_rule.h"
#include "coordinator/staleness_bound.h"

namespace shoal {

std::unique_ptr<LeaseRule> MakeLeaseRule(const Job::Strategy& strategy,
                                         const std::optional<RoundPlan>& rounds) {
  if (rounds.has_value()) return std::make_unique<RoundRule>(*rounds);
  if (strategy.max_staleness.has_value())
    return std::make_unique<StalenessBound>(*strategy.max_staleness);
  return nullptr;
}

}  // namespace shoal
