#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "common/model/variable.h"
#include "common/optimizer/optimizer.h"
#include "common/sharding/shard_map.h"

namespace shoal {

// kInvalidArgument: an optimizer of the job excludes from weight decay what is no variable of the
// model; other errors are MakeOptimizer's.
absl::Status CheckDecayExclusions(const Job& job, const std::vector<Variable>& variables);

// The one answer to which ps of `ps_count` holds what of the variables of the job's model, for
// every task and every check alike. kInvalidArgument is CheckChunks's: the job cuts them too
// small, or its optimizer takes whole variables and one is too large; or CheckDecayExclusions's.
absl::StatusOr<ShardMap> ShardMapOf(const Job& job, const std::vector<Variable>& variables,
                                    int ps_count);

}  // namespace shoal
