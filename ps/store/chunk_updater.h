#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/model/variable.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/rate_scale.h"
#include "common/sharding/shard_map.h"
#include "ps/store/chunk_state.h"
#include "ps/store/value_buffers.h"

namespace shoal {

// Updates chunks, each by the rule of its variables: optimizer, or moving average. Keeps no state
// of the chunks. Not thread-safe.
class ChunkUpdater {
 public:
  struct Options {
    const std::vector<Variable>* variables = nullptr;  // these three outlive this
    const PsShards* shards = nullptr;
    ValueBuffers* buffers = nullptr;
    std::shared_ptr<const Optimizer> optimizer;
    RateScale rate_scale;     // scales the optimizer's learning rate
    uint64_t look_ahead = 0;  // Extrapolate looks this many updates ahead
  };
  explicit ChunkUpdater(Options options);

  // Applies the update to `state`. A skipped step changes the version only. Updates in place if no
  // other holder has the values. Otherwise writes the new values to another buffer, which replaces
  // the old one.
  void Apply(int chunk, const ChunkUpdate& update, ChunkState* state);
  // Returns a buffer with the values expected `look_ahead` updates later, by the optimizer's slots.
  // Empty if look_ahead is 0 or the optimizer cannot extrapolate from this state.
  ValueBuffers::Hold Extrapolate(int chunk, const ChunkState& state);

 private:
  // Floats [begin, end) of a chunk that weight decay treats alike.
  struct DecayRun {
    size_t begin = 0;
    size_t end = 0;
    bool decays = true;
  };

  // Returns runs that cover all floats of the chunk. One run if the optimizer excludes no variable
  // from weight decay.
  std::vector<DecayRun> DecayRuns(const Chunk& chunk) const;
  // Both write the new values of `state` to `out`, which may be the old ones.
  void Optimize(int chunk, const ChunkUpdate& update, const ChunkState& state, float* out) const;
  void Average(int chunk, const ChunkUpdate& update, const ChunkState& state, float* out) const;
  const Chunk& chunk(int index) const { return options_.shards->chunks[index]; }

  const Options options_;
  std::vector<std::vector<DecayRun>> decay_runs_;  // by chunk
};

}  // namespace shoal
