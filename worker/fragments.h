#pragma once

#include <cstdint>
#include <vector>

#include "common/sharding/shard_map.h"

namespace shoal {

// A chunk of the ps of this number.
struct ChunkId {
  int ps = 0;
  int chunk = 0;

  bool operator==(const ChunkId&) const = default;
};

// The chunks of a model in groups that local steps exchange one after the other, each while the
// batches after it are computed, so that no link ever carries more than one at once (Douillard et
// al., Streaming DiLoCo, 2501.18512). A pure function of the shard map: who has a chunk first
// decides nothing. Plain data.
class Fragments {
 public:
  // So many groups, or as many as there are chunks to push, if these are fewer; of about the same
  // size each. Moving averages are in the last one, the parts of a variable together. `count` > 0.
  Fragments(const ShardMap& shard_map, uint64_t count);

  uint64_t count() const { return groups_.size(); }
  const std::vector<ChunkId>& group(uint64_t fragment) const { return groups_[fragment]; }
  // How many of them are exchanged within the first `done` batches of a step of so many. The last
  // one is so before the step ends, if it has batches enough, so that its answer need not be
  // waited for.
  uint64_t DueAfter(uint64_t done, uint64_t batches) const;

 private:
  std::vector<std::vector<ChunkId>> groups_;
};

}  // namespace shoal
