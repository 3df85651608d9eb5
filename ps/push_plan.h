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

// The steps of the job that a ps holds, and their rounds (docs/protocol.md, section 13). Job and
// number of examples give both, so no push decides what they are. Plain arithmetic, thread-safe.
class PushPlan {
 public:
  // `examples` > 0: of the training set, as the coordinator has told the ps.
  PushPlan(const Job& job, uint64_t examples);

  uint64_t examples() const { return steps_.examples(); }
  // kInvalidArgument: the job has no such step, or the push names another round than its step is
  // of. A push without a round passes: VariableStore rejects it where the job has rounds.
  absl::Status Check(const proto::Push& push) const;

 private:
  StepPlan steps_;
  std::optional<RoundPlan> rounds_;  // none: every step is an update
};

}  // namespace shoal
