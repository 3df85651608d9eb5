#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/model/variable.h"
#include "common/sharding/shard_map.h"

namespace shoal {

// Of the largest chunk that a job may ask for. Each travels in one message, for which the transport
// must have room (kMostExchangeBytes of common/rpc/grpc_network.h).
inline constexpr int64_t kMostChunkBytes = 16 << 20;

// Chunks that the variables of a job may be cut into. Each is a message of every step, some 30 us
// on a busy machine: with more a step would come near the time that a lease has.
inline constexpr int64_t kMostChunks = 1 << 18;

// Bytes of a ps that the applied set of one chunk takes.
inline int64_t AppliedSetBytes(uint64_t window_steps) {
  return static_cast<int64_t>((window_steps + 63) / 64 * 8);
}

// Whether variables may be cut so, which is to be asked before a ShardMap is made: at most
// kMostChunks, applied sets that take no more than 1 GiB, or than the variables themselves where
// those are larger, and no variable that must be one chunk above kMostChunkBytes. kInvalidArgument:
// names the fields of the job, the variable, the sizes and what would be right.
absl::Status CheckChunks(const std::vector<Variable>& variables, const ShardingOptions& options,
                         uint64_t window_steps);

}  // namespace shoal
