#include "worker/step/fragments.h"

#include <algorithm>
#include <tuple>

namespace shoal {

Fragments::Fragments(const ShardMap& shard_map, uint64_t count) {
  struct Sized {
    int64_t size;
    ChunkId id;
  };
  std::vector<Sized> optimized;
  std::vector<ChunkId> averages;
  for (int ps = 0; ps < shard_map.ps_count(); ++ps) {
    const std::vector<Chunk>& chunks = shard_map.ps(ps).chunks;
    for (int i = 0; i < static_cast<int>(chunks.size()); ++i) {
      if (chunks[i].rule == UpdateRule::kOptimizer) {
        optimized.push_back({chunks[i].size, {ps, i}});
      } else if (chunks[i].pushed()) {
        averages.push_back({ps, i});
      }
    }
  }
  // Largest first, each to the group with the smallest size so far.
  std::stable_sort(optimized.begin(), optimized.end(),
                   [](const Sized& a, const Sized& b) { return a.size > b.size; });
  groups_.resize(std::clamp<uint64_t>(optimized.size(), 1, count));
  std::vector<int64_t> sizes(groups_.size());
  for (const Sized& chunk : optimized) {
    const auto least = std::min_element(sizes.begin(), sizes.end());
    *least += chunk.size;
    groups_[least - sizes.begin()].push_back(chunk.id);
  }
  for (std::vector<ChunkId>& group : groups_) {
    std::sort(group.begin(), group.end(), [](const ChunkId& a, const ChunkId& b) {
      return std::tie(a.ps, a.chunk) < std::tie(b.ps, b.chunk);
    });
  }
  groups_.back().insert(groups_.back().end(), averages.begin(), averages.end());
}

// Fragment f of P is due after batch 1 + (n - 1) (f + 1) / (P + 1) of n, rounded down.
uint64_t Fragments::DueAfter(uint64_t done, uint64_t batches) const {
  uint64_t due = 0;
  while (due < count() && 1 + (batches - 1) * (due + 1) / (count() + 1) <= done) ++due;
  return due;
}

}  // namespace shoal
