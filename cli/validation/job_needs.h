#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/validation/validated_job.h"
#include "common/memory/memory_needs.h"
#include "worker/input/dataset/dataset.h"

namespace shoal {

// The needs of a job on its cluster.
struct JobNeeds {
  struct Ps {
    std::string address;
    int64_t variable_bytes = 0;
    int64_t slot_bytes = 0;  // of the optimizer
    int64_t chunks = 0;
  };

  // The payload of one step in one direction, as the job compresses it.
  struct Traffic {
    std::string codec;  // empty: none
    uint64_t bytes = 0;
    uint64_t float32_bytes = 0;  // without the codec
  };

  int64_t trainable_parameters = 0;
  int64_t other_parameters = 0;
  int64_t variable_bytes = 0;
  int64_t slot_bytes = 0;
  std::vector<Ps> ps;  // by index; empty without a cluster spec
  Traffic push;
  Traffic pull;
  // For which layers the workers lack the model's precision (DescribePrecision); empty: for none.
  std::string precision;
  // For the coordinator, each ps and a worker. Without a cluster spec there is one ps.
  std::vector<MemoryNeeds> memory;
  // 0 if the number of examples is unknown, except total_steps if the job has `steps`.
  uint64_t examples = 0;
  uint64_t steps_per_epoch = 0;
  uint64_t total_steps = 0;
};

// `examples` is the size of the training set, > 0; absent if its files are not readable here.
// `data` is the part of a worker's memory that the data sets take. kInvalidArgument: the variables
// have more chunks than the limit (chunk_limits.h).
absl::StatusOr<JobNeeds> NeedsOf(const ValidatedJob& validated, std::optional<uint64_t> examples,
                                 const DatasetMemory& data = {});

}  // namespace shoal
