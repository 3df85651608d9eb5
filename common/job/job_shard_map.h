#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "common/model/variable.h"
#include "common/optimizer/optimizer.h"
#include "common/sharding/shard_map.h"

namespace shoal {

// Returns kInvalidArgument if an optimizer of the job excludes an unknown variable from weight
// decay. Other errors are MakeOptimizer's.
absl::Status CheckDecayExclusions(const Job& job, const std::vector<Variable>& variables);

// Returns the division of the model's variables over `ps_count` ps. All tasks and checks use this
// function. Returns kInvalidArgument from CheckChunks, if the job's chunks are too small, or if its
// optimizer takes whole variables and one is too large. Also returns the errors of
// CheckDecayExclusions.
absl::StatusOr<ShardMap> ShardMapOf(const Job& job, const std::vector<Variable>& variables,
                                    int ps_count);

}  // namespace shoal
