#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/compression/codec.h"
#include "common/model/model_layout.h"
#include "common/rpc/message.h"
#include "common/sharding/shard_map.h"

namespace shoal {

// What pushes carry where the job compresses them: each chunk of a step is encoded once and kept
// until it is acknowledged, so that a push that is sent again has the same bytes.
//
// What a codec leaves out of a step, its residual, is this worker's own, and is added to what it
// pushes next of the chunk. It is tied to the push: it is settled when the ps says that this push
// was applied. Where another worker's gradient of the step was applied instead, it stays what it
// was; where it cannot be known which, or the push was given up, it is forgotten. So no part of a
// gradient counts twice, and one that is lost with a worker or a timeline is a part that was small.
// Loop thread only.
class GradientEncoder {
 public:
  struct Options {
    const ShardMap* shard_map = nullptr;  // these outlive this
    const ModelLayout* layout = nullptr;
    // Of a chunk they stay unchanged from its first Payload() to its Acknowledge().
    std::span<const float> gradients;
    std::shared_ptr<const Codec> codec;  // null: nothing is compressed
  };
  explicit GradientEncoder(Options options);

  bool Encodes(const Chunk& chunk) const;
  // The payload of the chunk's push: the same bytes until Acknowledge() or Forget(). Of a chunk
  // that Encodes().
  Slice Payload(int ps, int chunk);
  // The ps has answered; `repeated`: as in proto::Applied. No effect on a chunk without a
  // Payload().
  void Acknowledge(int ps, int chunk, bool repeated);
  // Another timeline: what was pushed, and what is left, belongs to none that goes on.
  void Forget();

 private:
  struct Sent {
    Slice payload;  // empty while nothing is to be acknowledged
    int times = 0;  // that it was asked for
  };
  // The piece's gradient with its residual, in scratch_.
  std::span<const float> Corrected(const ChunkPiece& piece);
  std::span<float> ResidualOf(const ChunkPiece& piece);
  size_t OffsetOf(const ChunkPiece& piece) const;
  void Settle(const Chunk& chunk, const Slice& payload);

  const Options options_;
  std::vector<std::vector<Sent>> sent_;  // by ps, by chunk
  std::vector<float> residual_;          // laid out as the gradients; empty: there is none
  std::vector<float> scratch_;
};

}  // namespace shoal
