#pragma once

#include <cstdint>

#include "common/step_plan/round_plan.h"
#include "coordinator/steps/lease_rule.h"

namespace shoal {

// Synchronous rounds (section 13 of the protocol): a step may be leased once all steps of earlier
// rounds are done. All leases at any moment therefore belong to one round. The parameters that a
// worker pulls are ready, and no worker waits at a ps.
class RoundRule : public LeaseRule {
 public:
  explicit RoundRule(const RoundPlan& rounds) : rounds_(rounds) {}

  uint64_t Span() const override { return rounds_.max_steps(); }
  bool MayLease(const Candidate& candidate) const override {
    return rounds_.StartAt(candidate.step) <= candidate.base;
  }
  void Leased(uint64_t) override {}
  void Done(uint64_t) override {}

 private:
  const RoundPlan rounds_;
};

}  // namespace shoal
