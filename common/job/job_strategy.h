#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "common/model/variable.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/rate_scale.h"
#include "common/step_plan/batch_plan.h"

namespace shoal {

// What the strategy of a job makes of its plan and of its optimizer: the one answer for every task
// and every check alike.

// Whether the job leaves to the number of workers how many gradients make an update, what the outer
// optimizer is, or what the learning rate, the momentum and the warm-up of async go by.
bool LeavesToWorkers(const Job& job);

// Writes that into the job, for so many workers, as the cluster spec lists. kInvalidArgument: it
// lists none, or more than a round may have.
absl::Status ResolveStrategy(uint64_t listed_workers, Job* job);

// Takes it from `run`, the job of a run that this one goes on with, which was resolved when it
// began.
void TakeResolvedFrom(const Job& run, Job* job);

// kInvalidArgument: a round of the job has more steps than its epochs have.
absl::Status CheckRounds(const Job& job, uint64_t steps_per_epoch);

// Which step of the job takes which batches of so many examples.
BatchPlan BatchPlanOf(const Job& job, uint64_t examples);

// What becomes of the learning rate of the ps' optimizer.
RateScale RateScaleOf(const Job& job);

// The option of an optimizer's config that momentum_by_workers lowers; empty: it has no momentum.
std::string MomentumOption(const nlohmann::json& optimizer);

// What the ps apply to what is pushed: the job's optimizer, or the outer one of the strategy local;
// of one that is not resolved yet as it is for one worker. Errors are MakeOptimizer's.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakePsOptimizer(const Job& job);

// The variables of the job's model as its ps update them: a moving average takes a sample of a
// whole step, which under the strategy local is one of several batches.
std::vector<Variable> VariablesOfPs(const Job& job, std::vector<Variable> variables);

}  // namespace shoal
