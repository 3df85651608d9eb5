#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/rpc/message.h"
#include "ps/store/value_buffers.h"

namespace shoal {

// The values of one chunk at one moment, for sending. `payload` stays unchanged while its owner is
// held, also when the chunk is updated meanwhile (rule 5: publish by swapping buffers).
struct ChunkSnapshot {
  uint64_t version = 0;
  std::vector<Slice> payload;
};

// Returns a snapshot of the `size` floats in `values`, without a copy. It keeps `buffers` alive.
ChunkSnapshot MakeSnapshot(std::shared_ptr<const ValueBuffers> buffers,
                           const ValueBuffers::Hold& values, int64_t size, uint64_t version);

}  // namespace shoal
