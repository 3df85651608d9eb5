#include "common/compression/chunk_payload.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {

size_t PayloadBytes(const Codec* codec, const Chunk& chunk) {
  if (codec == nullptr) return chunk.size * sizeof(float);
  size_t bytes = 0;
  for (const ChunkPiece& piece : chunk.pieces) bytes += codec->EncodedBytes(piece.size);
  return bytes;
}

Slice EncodeChunk(const Codec& codec, const Chunk& chunk,
                  absl::FunctionRef<std::span<const float>(const ChunkPiece&)> values) {
  const size_t size = PayloadBytes(&codec, chunk);
  std::shared_ptr<char[]> bytes = std::make_shared_for_overwrite<char[]>(size);
  char* next = bytes.get();
  for (const ChunkPiece& piece : chunk.pieces) {
    codec.Encode(values(piece), next);
    next += codec.EncodedBytes(piece.size);
  }
  return {bytes.get(), size, std::move(bytes)};
}

absl::Status DecodeChunk(const Codec& codec, const Chunk& chunk, const Message& message,
                         absl::FunctionRef<std::span<float>(const ChunkPiece&)> out) {
  const size_t size = message.payload_bytes();
  if (const size_t expected = PayloadBytes(&codec, chunk); size != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat("a chunk of ", size, " bytes as ", codec.config(), "; expected ", expected));
  }
  std::unique_ptr<char[]> joined;  // for a payload that the transport has split
  const char* next = message.payload.empty() ? nullptr : message.payload.front().data;
  if (message.payload.size() > 1) {
    joined = std::make_unique_for_overwrite<char[]>(size);
    CopyPayload(message, 0, joined.get(), size);
    next = joined.get();
  }
  for (const ChunkPiece& piece : chunk.pieces) {
    const size_t bytes = codec.EncodedBytes(piece.size);
    SHOAL_RETURN_IF_ERROR(codec.Decode({next, bytes}, out(piece)));
    next += bytes;
  }
  return absl::OkStatus();
}

}  // namespace shoal
