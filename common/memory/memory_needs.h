#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/sharding/shard_map.h"

namespace shoal {

// The memory of one task as two sums: permanent memory, and the max of temporary memory. `shoal
// validate` prints it. A ps and a worker compare it with the memory of their machine.
// docs/operations.md explains it.
struct MemoryNeeds {
  struct Part {
    std::string what;  // "variables"
    uint64_t bytes = 0;
  };
  std::string task;  // "ps 0"
  std::vector<Part> held;
  std::vector<Part> temporary;

  uint64_t held_bytes() const;
  // The part of held_bytes() for the program and its libraries. An upper bound: processes of one
  // machine share most of it.
  uint64_t program_bytes() const;
  uint64_t max_bytes() const;  // both sums
  // The part of max_bytes() that the task shares with others of its machine. It is optional.
  uint64_t shared_bytes() const;
  // Returns the permanent memory: "3.0 GiB (variables 1.0 GiB, slots 2.0 GiB)". Omits empty parts.
  std::string HeldText() const;
  // Returns the same with the max: "…, at most 6.3 GiB (with copies … 3.0 GiB, sending …)".
  std::string ToText() const;
};

// Returns the memory of a ps: variables, slots and applied sets; copies of the chunks that change
// while a checkpoint is written or held for an evaluation; answers in flight; and one incoming
// gradient from each of `workers`. With rounds (round_steps > 0), it also has the sum of each chunk
// and its version before. At worst it has the early gradients of all steps of a round except the
// first.
MemoryNeeds PsMemory(int index, const PsShards& shards, int slots, uint64_t window_steps,
                     int workers, uint64_t round_steps = 0);

// The sizes that determine a worker's memory.
struct WorkerMemoryOptions {
  uint64_t parameter_bytes = 0;    // of the whole model, as stored in memory
  bool evaluates = false;          // the job has a test set
  uint64_t compression_bytes = 0;  // of compressed gradients and their residuals
  uint64_t inner_bytes = 0;        // of the worker's own optimizer
  uint64_t momentum_bytes = 0;     // of the worker's own momentum
  uint64_t activation_bytes = 0;
  uint64_t batch_bytes = 0;    // of one batch: inputs and targets
  int batches_ahead = 0;       // max batches in memory, with the current one
  uint64_t data_bytes = 0;     // of the data sets: caches, names of files
  uint64_t reading_bytes = 0;  // max temporary memory while examples are read
  uint64_t chunk_bytes = 0;
  int ps_count = 0;
};
MemoryNeeds WorkerMemory(const WorkerMemoryOptions& options);

MemoryNeeds CoordinatorMemory();

}  // namespace shoal
