#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "common/job/job.h"
#include "common/step_plan/round_plan.h"

namespace shoal {

// Decides when the job's strategy allows a step to be leased. The StepDispatcher asks it before
// each lease, and reports leases and done steps to it. Serves one timeline. Plain state machine: no
// threads, no clock.
class LeaseRule {
 public:
  virtual ~LeaseRule() = default;

  // About the max steps that all workers together have out at once.
  virtual uint64_t Span() const = 0;
  // A step that is neither done nor leased.
  struct Candidate {
    uint64_t step = 0;
    uint64_t base = 0;       // the first step that is not done
    bool came_back = false;  // a worker had it once, or may have had it
  };
  // Returns whether the candidate may be leased now. The lowest candidate must become allowed once
  // all current leases are done.
  virtual bool MayLease(const Candidate& candidate) const = 0;
  // `step` was leased, perhaps again.
  virtual void Leased(uint64_t step) = 0;
  // `step` is done, or its lease was revoked before a worker began it.
  virtual void Done(uint64_t step) = 0;
};

// Returns null if the strategy has no rule of its own. `rounds` are the job's rounds, once they are
// known. Nothing is leased before that.
std::unique_ptr<LeaseRule> MakeLeaseRule(const Job::Strategy& strategy,
                                         const std::optional<RoundPlan>& rounds);

}  // namespace shoal
