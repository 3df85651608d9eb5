#pragma once

#include <cstdint>
#include <vector>

#include "common/rpc/message.h"
#include "ps/store/value_buffers.h"

namespace shoal {

// All that an update of a chunk touches. A copy of it is a copy of the chunk (rule 5 of the
// protocol).
struct ChunkState {
  ValueBuffers::Hold values;
  std::vector<float*> slots;  // empty if the optimizer does not update the chunk
  uint64_t version = 0;       // steps so far
};

// The numbers of an update.
struct UpdateNumbers {
  uint64_t version = 0;    // steps applied
  uint64_t iteration = 0;  // of the optimizer, from 1
  uint64_t staleness = 0;  // of the gradient, when it came
};

// Returns the numbers of one more step for a chunk in this state.
inline UpdateNumbers NumbersOfNext(const ChunkState& state, uint64_t staleness) {
  return {state.version + 1, state.version + 1, staleness};
}

// An update that is due. Refers to a gradient that somebody else owns.
struct ChunkUpdate {
  const Message* gradient = nullptr;  // of the chunk's size; null: the step was skipped
  UpdateNumbers numbers;
};

}  // namespace shoal
