#include "ps/services/push_plan.h"

#include "absl/strings/str_cat.h"
#include "common/job/job_strategy.h"
#include "common/step_plan/round_message.h"
#include "proto/parameter_server.pb.h"

namespace shoal {
namespace {

std::string Text(const Round& round) {
  return absl::StrCat("round ", round.number, " of ", round.count, " steps from ", round.first,
                      " on");
}

}  // namespace

PushPlan::PushPlan(const Job& job, uint64_t examples) : steps_(BatchPlanOf(job, examples).steps()) {
  if (const uint64_t gradients = job.strategy.gradients_per_update; gradients > 0)
    rounds_.emplace(steps_, gradients);
}

absl::Status PushPlan::Check(const proto::Push& push) const {
  const auto wrong = [&push](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk ", push.chunk(), " of step ", push.step(), ": ", what...));
  };
  if (push.step() >= steps_.total_steps()) {
    return wrong("the job has the steps 0 to ", steps_.total_steps() - 1,
                 ": give the worker the job and the data of this run");
  }
  const std::optional<Round> told = RoundOf(push);
  if (!told.has_value() || !rounds_.has_value()) return absl::OkStatus();
  const Round round = rounds_->Of(push.step());
  if (*told == round) return absl::OkStatus();
  return wrong("the push names ", Text(*told), ", but the step belongs to ", Text(round),
               ": give the worker the job and the data of this run");
}

}  // namespace shoal
