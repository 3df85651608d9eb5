#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "common/memory/memory_needs.h"
#include "common/model/keras_model.h"
#include "worker/input/dataset/dataset.h"

namespace shoal {

// The number of tasks in a cluster with one coordinator.
struct TaskCounts {
  int ps = 1;
  int workers = 1;
};

// Returns the memory of the coordinator, of each ps, and of one worker, in this order. `model` is
// the job's. `examples` is the size of the training set, absent if unknown. `data` is the part of a
// worker's memory that the data sets take. kInvalidArgument: the variables have more chunks than
// the limit (chunk_limits.h).
absl::StatusOr<std::vector<MemoryNeeds>> MemoryOfTasks(const Job& job, const KerasModel& model,
                                                       TaskCounts counts,
                                                       std::optional<uint64_t> examples,
                                                       const DatasetMemory& data = {});

// Returns the sum for a machine that runs all of them. The programs share most of their memory, so
// they count as memory that may be needed at times.
absl::StatusOr<MemoryNeeds> MemoryOfAllTasks(const Job& job, const KerasModel& model,
                                             TaskCounts counts, std::optional<uint64_t> examples,
                                             const DatasetMemory& data = {});

}  // namespace shoal
