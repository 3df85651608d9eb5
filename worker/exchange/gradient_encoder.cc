#include "worker/exchange/gradient_encoder.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/compression/chunk_payload.h"

namespace shoal {

GradientEncoder::GradientEncoder(Options options) : options_(std::move(options)) {
  if (options_.codec == nullptr) return;
  for (int ps = 0; ps < options_.shard_map->ps_count(); ++ps)
    sent_.emplace_back(options_.shard_map->ps(ps).chunks.size());
  if (options_.codec->leaves_residual()) residual_.resize(options_.layout->size);
}

bool GradientEncoder::Encodes(const Chunk& chunk) const {
  return CodecOf(options_.codec.get(), chunk) != nullptr;
}

size_t GradientEncoder::OffsetOf(const ChunkPiece& piece) const {
  return options_.layout->variables[piece.variable].offset + piece.variable_offset;
}

std::span<float> GradientEncoder::ResidualOf(const ChunkPiece& piece) {
  return std::span(residual_).subspan(OffsetOf(piece), piece.size);
}

std::span<const float> GradientEncoder::GradientWithResidual(const ChunkPiece& piece) {
  const std::span<const float> gradient = options_.gradients.subspan(OffsetOf(piece), piece.size);
  if (residual_.empty()) return gradient;
  const std::span<const float> residual = ResidualOf(piece);
  scratch_.resize(piece.size);
  for (size_t i = 0; i < scratch_.size(); ++i) scratch_[i] = gradient[i] + residual[i];
  return scratch_;
}

Slice GradientEncoder::Payload(int ps, int chunk) {
  Sent& sent = sent_[ps][chunk];
  if (sent.times++ == 0) {
    sent.payload =
        EncodeChunk(*options_.codec, options_.shard_map->ps(ps).chunks[chunk],
                    [this](const ChunkPiece& piece) { return GradientWithResidual(piece); });
  }
  return sent.payload;
}

void GradientEncoder::Acknowledge(int ps, int chunk, bool repeated) {
  if (sent_.empty()) return;
  const Sent sent = std::exchange(sent_[ps][chunk], Sent());
  if (sent.times == 0 || residual_.empty()) return;
  const Chunk& of = options_.shard_map->ps(ps).chunks[chunk];
  if (!repeated) return Settle(of, sent.payload);
  if (sent.times == 1) return;  // another worker was faster
  for (const ChunkPiece& piece : of.pieces) std::ranges::fill(ResidualOf(piece), 0.0f);
}

// Sets the residual: the gradient plus the old residual, minus the sent values.
void GradientEncoder::Settle(const Chunk& chunk, const Slice& payload) {
  std::vector<float> applied(chunk.size);
  const absl::Status decoded = DecodeChunk(
      *options_.codec, chunk, Message{.payload = {payload}}, [&applied](const ChunkPiece& piece) {
        return std::span(applied).subspan(piece.chunk_offset, piece.size);
      });
  SHOAL_CHECK(decoded.ok());  // we have encoded it ourselves
  for (const ChunkPiece& piece : chunk.pieces) {
    const std::span<const float> corrected = GradientWithResidual(piece);
    const std::span<float> residual = ResidualOf(piece);
    for (size_t i = 0; i < residual.size(); ++i)
      residual[i] = corrected[i] - applied[piece.chunk_offset + i];
  }
}

void GradientEncoder::Forget() {
  for (std::vector<Sent>& chunks : sent_) std::ranges::fill(chunks, Sent());
  std::ranges::fill(residual_, 0.0f);
}

}  // namespace shoal
