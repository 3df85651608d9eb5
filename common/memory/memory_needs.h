#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/sharding/shard_map.h"

namespace shoal {

// The memory of one task as a sum: what it holds as long as it works, and what comes on top at
// times, at the worst. `shoal validate` prints it, ps and worker compare it with what their machine
// has, docs/operations.md explains it.
struct MemoryNeeds {
  struct Part {
    std::string what;  // "variables"
    uint64_t bytes = 0;
  };
  std::string task;  // "ps 0"
  std::vector<Part> held;
  std::vector<Part> temporary;

  uint64_t held_bytes() const;
  // Of that, for the program and its libraries: a bound, of which processes of one machine share
  // most.
  uint64_t program_bytes() const;
  uint64_t max_bytes() const;  // all of it
  // Of that, what it shares with others of its machine, and can do without.
  uint64_t shared_bytes() const;
  // "3.0 GiB (variables 1.0 GiB, slots 2.0 GiB)": what is held. Parts of no size are left out.
  std::string HeldText() const;
  // The same, and up to what it grows: "…, at most 6.3 GiB (with copies … 3.0 GiB, sending …)".
  std::string ToText() const;
};

// Besides variables, slots and applied sets: copies of the chunks that are updated while a
// checkpoint is written or held for an evaluation, answers that are being sent, and a gradient that
// is being received from each of `workers`. Where updates are of rounds (round_steps > 0), also the
// sum of each chunk and its version before, and at worst the gradients of all steps of a round but
// its first, which come before their turn.
MemoryNeeds PsMemory(int index, const PsShards& shards, int slots, uint64_t window_steps,
                     int workers, uint64_t round_steps = 0);

// What a worker's memory depends on, in bytes.
struct WorkerMemoryOptions {
  uint64_t parameter_bytes = 0;    // of the whole model, as they lie in memory
  bool evaluates = false;          // the job has a test set
  uint64_t compression_bytes = 0;  // of compressed gradients, and of what they leave out
  uint64_t inner_bytes = 0;        // of an optimizer of the worker's own
  uint64_t momentum_bytes = 0;     // of a momentum of its own
  uint64_t activation_bytes = 0;
  uint64_t batch_bytes = 0;    // of one batch: inputs and targets
  int batches_ahead = 0;       // that may be in memory, the one at hand included
  uint64_t data_bytes = 0;     // of the data sets: caches, names of files
  uint64_t reading_bytes = 0;  // of examples that are being read, at most
  uint64_t chunk_bytes = 0;
  int ps_count = 0;
};
MemoryNeeds WorkerMemory(const WorkerMemoryOptions& options);

MemoryNeeds CoordinatorMemory();

}  // namespace shoal
