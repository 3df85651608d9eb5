#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "common/job/job.h"
#include "common/step_plan/round_plan.h"

namespace shoal {

// When a step may be leased, as far as the job's strategy decides it: the StepDispatcher asks for
// each that it would lease, and says what becomes of them. Of one timeline. Plain state machine: no
// threads, no clock.
class LeaseRule {
 public:
  virtual ~LeaseRule() = default;

  // About as many steps are out at once at most, of all workers together.
  virtual uint64_t Span() const = 0;
  // A step that is neither done nor leased.
  struct Candidate {
    uint64_t step = 0;
    uint64_t base = 0;       // the first step that is not done
    bool came_back = false;  // somebody had it once, or may have had it
  };
  // The lowest candidate may be leased some time, once what is leased now is done.
  virtual bool MayLease(const Candidate& candidate) const = 0;
  // It was leased, perhaps again.
  virtual void Leased(uint64_t step) = 0;
  // It is done, or as if it had never been leased.
  virtual void Done(uint64_t step) = 0;
};

// Null: the strategy has no rule of its own. `rounds` are the job's, as soon as they are known:
// before that nothing is leased.
std::unique_ptr<LeaseRule> MakeLeaseRule(const Job::Strategy& strategy,
                                         const std::optional<RoundPlan>& rounds);

}  // namespace shoal
