#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "common/memory/memory_needs.h"
#include "common/sharding/shard_map.h"
#include "worker/compute/model_runner.h"
#include "worker/input/dataset.h"

namespace shoal {

// The memory that a worker of a job needs. `runner` is of its model, and prepares for its batches,
// the last and smaller one of an epoch, too. `training_examples`: 0 where they are not known.
// `data`: of its data sets together.
absl::StatusOr<MemoryNeeds> WorkerMemoryOf(const Job& job, uint64_t training_examples,
                                           const DatasetMemory& data, const ShardMap& shard_map,
                                           ModelRunner* runner);

}  // namespace shoal
