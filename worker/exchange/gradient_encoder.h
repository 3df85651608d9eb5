#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/compression/codec.h"
#include "common/model/model_layout.h"
#include "common/rpc/message.h"
#include "common/sharding/shard_map.h"

namespace shoal {

// Encodes pushes if the job compresses them. Each chunk of a step is encoded once and kept until it
// is acknowledged, so that a repeated push has the same bytes.
//
// The residual is the part of the gradient that the codec omits. It belongs to this worker, which
// adds it to its next push of the chunk. Its fate depends on the ps's answer:
//
// - The ps applied this push: the residual becomes the omitted part.
// - The ps applied another worker's gradient of the step: the residual stays as before.
// - It is unknown which one was applied, or the push was cancelled: the residual is dropped.
//
// So no part of a gradient counts twice, and a part that is lost with a worker or a timeline is
// small. Loop thread only.
class GradientEncoder {
 public:
  struct Options {
    const ShardMap* shard_map = nullptr;  // all pointers must outlive this
    const ModelLayout* layout = nullptr;
    // A chunk's gradients must not change from its first Payload() to its Acknowledge().
    std::span<const float> gradients;
    std::shared_ptr<const Codec> codec;  // null: no compression
  };
  explicit GradientEncoder(Options options);

  // Whether the job compresses pushes of this chunk.
  bool Encodes(const Chunk& chunk) const;
  // Returns the payload of the chunk's push: the same bytes until Acknowledge() or Forget().
  // Requires Encodes(chunk).
  Slice Payload(int ps, int chunk);
  // Handles the ps's answer; `repeated` is as in proto::Applied. Ignores a chunk without a
  // Payload().
  void Acknowledge(int ps, int chunk, bool repeated);
  // Drops all payloads and residuals, because a new timeline begins without them.
  void Forget();

 private:
  struct Sent {
    Slice payload;  // empty if there is nothing to acknowledge
    int times = 0;  // number of Payload() calls
  };
  // The piece's gradient plus its residual; uses scratch_.
  std::span<const float> GradientWithResidual(const ChunkPiece& piece);
  std::span<float> ResidualOf(const ChunkPiece& piece);
  size_t OffsetOf(const ChunkPiece& piece) const;
  void Settle(const Chunk& chunk, const Slice& payload);

  const Options options_;
  std::vector<std::vector<Sent>> sent_;  // by ps, by chunk
  std::vector<float> residual_;          // laid out like the gradients; empty: no residual
  std::vector<float> scratch_;
};

}  // namespace shoal
