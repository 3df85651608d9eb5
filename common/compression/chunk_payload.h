#pragma once

#include <cstddef>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/compression/codec.h"
#include "common/rpc/message.h"
#include "common/sharding/shard_map.h"

namespace shoal {

// The layout of a chunk in a payload, for both ends. `codec` writes each piece separately, so that
// no block shares its scale with another variable; without a codec the values are float32. Only
// variables that the optimizer updates are compressed. Moving averages are statistics of a few
// bytes, and their neighbouring magnitudes differ by orders. Frozen variables are sent only once.

// Returns the codec of this chunk; null: float32.
inline const Codec* CodecOf(const Codec* codec, const Chunk& chunk) {
  return chunk.has_slots() ? codec : nullptr;
}

// Returns the payload size of this chunk in bytes, with the codec from CodecOf().
size_t PayloadBytes(const Codec* codec, const Chunk& chunk);

// Encodes the chunk into a buffer that the slice owns. `values` returns the values of each piece.
Slice EncodeChunk(const Codec& codec, const Chunk& chunk,
                  absl::FunctionRef<std::span<const float>(const ChunkPiece&)> values);

// Decodes the payload of a message; `out` returns the place of each piece. kInvalidArgument if it
// is no encoding of this chunk; some pieces may be written by then.
absl::Status DecodeChunk(const Codec& codec, const Chunk& chunk, const Message& message,
                         absl::FunctionRef<std::span<float>(const ChunkPiece&)> out);

}  // namespace shoal
