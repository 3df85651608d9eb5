#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/model/variable.h"
#include "common/sharding/shard_map.h"

namespace shoal {

// The max size of a chunk that a job may set. Each chunk is one message, so the transport must have
// room for it (kMaxExchangeBytes of common/rpc/methods.h).
inline constexpr int64_t kMaxChunkBytes = 16 << 20;

// The max number of chunks of a job's variables. Each is a message in every step and takes some 30
// us on a busy machine: with more, a step would come close to the lease timeout.
inline constexpr int64_t kMaxChunks = 1 << 18;

// The memory of a ps for the applied set of one chunk, in bytes.
inline int64_t AppliedSetBytes(uint64_t window_steps) {
  return static_cast<int64_t>((window_steps + 63) / 64 * 8);
}

// Checks that the variables may be cut with these options; call it before making a ShardMap. Allows
// at most kMaxChunks chunks, and applied sets of at most 1 GiB or, if that is more, the size of
// the variables. Rejects a variable above kMaxChunkBytes that must be one chunk. kInvalidArgument
// names the fields of the job, the variable, the sizes and a valid setting.
absl::Status CheckChunks(const std::vector<Variable>& variables, const ShardingOptions& options,
                         uint64_t window_steps);

}  // namespace shoal
