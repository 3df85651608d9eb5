#include "ps/loading/chunk_coding.h"

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "common/compression/chunk_payload.h"

namespace shoal {
namespace {

std::string Name(const std::string& config) {
  return config.empty() ? "float32" : Printable(config, kMaxNameBytes);
}
std::string ConfigOf(const Codec* codec) { return codec == nullptr ? "" : codec->config(); }

}  // namespace

absl::StatusOr<ChunkCoding> ChunkCoding::Of(const Job::Compression& compression) {
  ChunkCoding coding;
  SHOAL_ASSIGN_OR_RETURN(coding.push_, MakeCodec(compression.push, Direction::kPush));
  SHOAL_ASSIGN_OR_RETURN(coding.pull_, MakeCodec(compression.pull, Direction::kPull));
  return coding;
}

absl::Status ChunkCoding::CheckPeer(const std::string& push_codec,
                                    const std::string& pull_codec) const {
  const std::string push = ConfigOf(push_.get()), pull = ConfigOf(pull_.get());
  if (push == push_codec && pull == pull_codec) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the worker pushes ", Name(push_codec), " and pulls ", Name(pull_codec),
                   ", but this job pushes ", Name(push), " and pulls ", Name(pull),
                   ": start the worker from the same build as this ps"));
}

bool ChunkCoding::compresses_push(const Chunk& chunk) const {
  return CodecOf(push_.get(), chunk) != nullptr;
}

bool ChunkCoding::compresses_pull(const Chunk& chunk) const {
  return CodecOf(pull_.get(), chunk) != nullptr;
}

absl::StatusOr<Message> ChunkCoding::DecodePush(const Chunk& chunk, const Message& push) {
  if (floats_size_ < chunk.size || floats_.use_count() > 1) {
    floats_ = std::make_shared_for_overwrite<float[]>(chunk.size);
    floats_size_ = chunk.size;
  }
  float* const floats = floats_.get();
  SHOAL_RETURN_IF_ERROR(DecodeChunk(*push_, chunk, push, [floats](const ChunkPiece& piece) {
    return std::span(floats + piece.chunk_offset, piece.size);
  }));
  return Message{
      .payload = {{reinterpret_cast<const char*>(floats), chunk.size * sizeof(float), floats_}}};
}

ChunkSnapshot ChunkCoding::EncodeValues(const Chunk& chunk, const ChunkSnapshot& values) const {
  const auto* floats = reinterpret_cast<const float*>(values.payload.front().data);
  return {.version = values.version,
          .payload = {EncodeChunk(*pull_, chunk, [floats](const ChunkPiece& piece) {
            return std::span(floats + piece.chunk_offset, piece.size);
          })}};
}

}  // namespace shoal
