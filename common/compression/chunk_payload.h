#pragma once

#include <cstddef>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/compression/codec.h"
#include "common/rpc/message.h"
#include "common/sharding/shard_map.h"

namespace shoal {

// How a chunk lies in a payload, decided here for both ends: as `codec` writes its pieces, each by
// itself, so that no block has the scale of another variable; or as float32, where `codec` is null.
// Only what the optimizer updates is compressed. Moving averages are statistics of a few bytes with
// magnitudes side by side that differ by orders; what is frozen travels once.

// The codec of this chunk; null: float32.
inline const Codec* CodecOf(const Codec* codec, const Chunk& chunk) {
  return chunk.has_slots() ? codec : nullptr;
}

// Bytes of a payload of this chunk, whose codec is as CodecOf() says.
size_t PayloadBytes(const Codec* codec, const Chunk& chunk);

// The chunk, whose pieces lie where `values` says, in a buffer that the slice owns.
Slice EncodeChunk(const Codec& codec, const Chunk& chunk,
                  absl::FunctionRef<std::span<const float>(const ChunkPiece&)> values);

// Reads the payload of a message to where `out` says. kInvalidArgument: it is no encoding of this
// chunk; some pieces may have been written then.
absl::Status DecodeChunk(const Codec& codec, const Chunk& chunk, const Message& message,
                         absl::FunctionRef<std::span<float>(const ChunkPiece&)> out);

}  // namespace shoal
