#include "coordinator/steps/lease_rule.h"

#include "coordinator/steps/round_rule.h"
#include "coordinator/steps/staleness_bound.h"
#include "coordinator/steps/warm_up_rule.h"

namespace shoal {

std::unique_ptr<LeaseRule> MakeLeaseRule(const Job::Strategy& strategy,
                                         const std::optional<RoundPlan>& rounds) {
  if (rounds.has_value()) return std::make_unique<RoundRule>(*rounds);
  if (strategy.max_staleness.has_value())
    return std::make_unique<StalenessBound>(*strategy.max_staleness);
  if (strategy.warmup_steps > 0)
    return std::make_unique<WarmUpRule>(strategy.warmup_steps, strategy.workers);
  return nullptr;
}

}  // namespace shoal
