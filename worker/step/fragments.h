#pragma once

#include <cstdint>
#include <vector>

#include "common/sharding/shard_map.h"

namespace shoal {

// Chunk number `chunk` of ps number `ps`.
struct ChunkId {
  int ps = 0;
  int chunk = 0;

  bool operator==(const ChunkId&) const = default;
};

// The chunks of a model in groups, for local steps. A worker exchanges one group after the other,
// each during the computation of the next batches. This keeps a link from carrying more than one
// group at once (Douillard et al., Streaming DiLoCo, 2501.18512). A pure function of the shard map:
// the order in which chunks arrive does not matter. Plain data.
class Fragments {
 public:
  // Makes `count` groups of about equal size, or as many as there are pushed chunks if these are
  // fewer. Moving averages are all in the last group, so that the parts of each stay together.
  // Requires `count` > 0.
  Fragments(const ShardMap& shard_map, uint64_t count);

  uint64_t count() const { return groups_.size(); }
  const std::vector<ChunkId>& group(uint64_t fragment) const { return groups_[fragment]; }
  // The number of groups to exchange within the first `done` batches of a step with `batches`
  // batches. The last group is due before the end of the step if there are enough batches, so that
  // the worker need not wait for the answer.
  uint64_t DueAfter(uint64_t done, uint64_t batches) const;

 private:
  std::vector<std::vector<ChunkId>> groups_;
};

}  // namespace shoal
