#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "common/memory/memory_needs.h"
#include "common/sharding/shard_map.h"
#include "worker/compute/runner/model_runner.h"
#include "worker/input/dataset/dataset.h"

namespace shoal {

// Returns the memory that a worker of a job needs. Prepares `runner`, which has the job's model,
// for its batches, including the smaller last one of an epoch. `training_examples` is 0 if not
// known. `data` covers all of its data sets.
absl::StatusOr<MemoryNeeds> WorkerMemoryOf(const Job& job, uint64_t training_examples,
                                           const DatasetMemory& data, const ShardMap& shard_map,
                                           ModelRunner* runner);

}  // namespace shoal
