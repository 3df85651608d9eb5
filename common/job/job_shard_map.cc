#include "common/job/job_shard_map.h"

#include "common/base/status_macros.h"
#include "common/job/job_strategy.h"
#include "common/sharding/chunk_limits.h"

namespace shoal {

absl::Status CheckDecayExclusions(const Job& job, const std::vector<Variable>& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name);
  // Under the strategy local, the ps use another optimizer.
  for (const auto& optimizer : {MakeOptimizer(job.optimizer), MakePsOptimizer(job)}) {
    SHOAL_RETURN_IF_ERROR(optimizer.status());
    SHOAL_RETURN_IF_ERROR((*optimizer)->decay_exclusions().Check(names));
  }
  return absl::OkStatus();
}

absl::StatusOr<ShardMap> ShardMapOf(const Job& job, const std::vector<Variable>& variables,
                                    int ps_count) {
  SHOAL_RETURN_IF_ERROR(CheckDecayExclusions(job, variables));
  SHOAL_ASSIGN_OR_RETURN(const auto optimizer, MakePsOptimizer(job));
  const ShardingOptions options{.min_shard_bytes = job.strategy.min_shard_bytes,
                                .chunk_bytes = job.strategy.chunk_bytes,
                                .whole_variables = optimizer->takes_whole_variables()};
  SHOAL_RETURN_IF_ERROR(CheckChunks(variables, options, job.strategy.window_steps));
  return ShardMap(variables, ps_count, options);
}

}  // namespace shoal
