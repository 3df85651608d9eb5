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

// The effect of a job's strategy on its plan and its optimizer. All tasks and checks use these
// functions.

// Whether a setting of the job depends on the number of workers. These are: the gradients per
// update, the outer optimizer, and the worker count that scales async's learning rate, momentum and
// warm-up.
bool DependsOnWorkerCount(const Job& job);

// Resolves these settings for the number of workers in the cluster spec. Returns kInvalidArgument
// if it lists none, or more than a round may have.
absl::Status ResolveStrategy(uint64_t listed_workers, Job* job);

// Copies the resolved settings from `run`, the job of a run that this job resumes.
void TakeResolvedFrom(const Job& run, Job* job);

// Returns kInvalidArgument if a round of the job has more steps than an epoch.
absl::Status CheckRounds(const Job& job, uint64_t steps_per_epoch);

// The plan that assigns batches of the examples to the job's steps.
BatchPlan BatchPlanOf(const Job& job, uint64_t examples);

// How the job scales the learning rate of the ps' optimizer.
RateScale RateScaleOf(const Job& job);

// The option of an optimizer's config that momentum_by_workers lowers. Empty if it has no momentum.
std::string MomentumOption(const nlohmann::json& optimizer);

// The optimizer that the ps apply to pushed values: the job's, or under the strategy local the
// outer one. An unresolved strategy counts as one worker. Errors are MakeOptimizer's.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakePsOptimizer(const Job& job);

// The variables of the job's model as its ps update them. The sample of a moving average covers a
// whole step, which under the strategy local has several batches. Its momentum is adjusted to this.
std::vector<Variable> VariablesOfPs(const Job& job, std::vector<Variable> variables);

}  // namespace shoal
