#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "common/job/job.h"
#include "common/step_plan/round_plan.h"
#include "common/step_plan/step_plan.h"

namespace shoal {

namespace proto {
class Push;
}  // namespace proto

// The steps of the job that a ps holds, and their rounds (docs/protocol.md, section 13). Both
// follow from the job and the number of examples, never from a push. Plain arithmetic, thread-safe.
class PushPlan {
 public:
  // `examples`: size of the training set, from the coordinator. Requires `examples` > 0.
  PushPlan(const Job& job, uint64_t examples);

  uint64_t examples() const { return steps_.examples(); }
  // kInvalidArgument: the job has no such step, or the push names another round than that of its
  // step. Accepts a push without a round: VariableStore rejects it if the job has rounds.
  absl::Status Check(const proto::Push& push) const;

 private:
  StepPlan steps_;
  std::optional<RoundPlan> rounds_;  // none: every step is an update
};

}  // namespace shoal
