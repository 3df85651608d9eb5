#include "worker/step/fragments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace shoal {
namespace {

using ::testing::ElementsAre;

// Kernels of many sizes, a moving average that is cut in two and a frozen variable, on three ps.
class FragmentsTest : public testing::Test {
 protected:
  static std::vector<Variable> Variables() {
    std::vector<Variable> variables;
    for (const int64_t rows : {700, 40, 300, 300, 900, 10, 64})
      variables.push_back({.name = "kernel_" + std::to_string(variables.size()), .shape = {rows}});
    variables.push_back({.name = "mean", .shape = {500}, .rule = UpdateRule::kMovingAverage});
    variables.push_back({.name = "frozen", .shape = {100}, .rule = UpdateRule::kFrozen});
    return variables;
  }
  const ShardMap shard_map_{Variables(), 3, {.min_shard_bytes = 256, .chunk_bytes = 256}};
  const Chunk& Of(const ChunkId& id) const { return shard_map_.ps(id.ps).chunks[id.chunk]; }
};

TEST_F(FragmentsTest, EveryChunkThatIsPushedIsInOneOfThem) {
  for (const uint64_t count : {1, 2, 5}) {
    const Fragments fragments(shard_map_, count);
    ASSERT_EQ(fragments.count(), count);
    std::set<std::tuple<int, int>> seen;
    for (uint64_t f = 0; f < count; ++f) {
      for (const ChunkId& id : fragments.group(f)) {
        EXPECT_TRUE(Of(id).pushed());
        EXPECT_TRUE(seen.emplace(id.ps, id.chunk).second) << id.ps << " " << id.chunk;
        EXPECT_TRUE(Of(id).rule == UpdateRule::kOptimizer || f == count - 1);
      }
    }
    size_t pushed = 0;
    for (int ps = 0; ps < 3; ++ps) {
      for (const Chunk& chunk : shard_map_.ps(ps).chunks) pushed += chunk.pushed() ? 1 : 0;
    }
    EXPECT_EQ(seen.size(), pushed);
  }
}

TEST_F(FragmentsTest, FragmentsHaveAboutOneSize) {
  const Fragments fragments(shard_map_, 4);
  std::vector<int64_t> sizes(4);
  for (uint64_t f = 0; f < 4; ++f) {
    for (const ChunkId& id : fragments.group(f)) {
      if (Of(id).rule == UpdateRule::kOptimizer) sizes[f] += Of(id).size;
    }
  }
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  EXPECT_LE(*most - *least, 64) << "a chunk";
}

TEST_F(FragmentsTest, ThereAreNoMoreThanChunks) {
  const ShardMap one({{.name = "kernel", .shape = {8}}}, 1, {});
  EXPECT_EQ(Fragments(one, 4).count(), 1u);
  const ShardMap none({{.name = "kernel", .shape = {8}, .rule = UpdateRule::kFrozen}}, 1, {});
  EXPECT_EQ(Fragments(none, 4).count(), 1u);
  EXPECT_THAT(Fragments(none, 4).group(0), ElementsAre());
}

// Evenly over the step, so that the last answer has time to come.
TEST_F(FragmentsTest, EachIsDueInItsTurn) {
  const Fragments fragments(shard_map_, 4);
  std::map<uint64_t, uint64_t> first;  // batch after which so many are due
  for (uint64_t done = 1; done <= 100; ++done) first.emplace(fragments.DueAfter(done, 100), done);
  EXPECT_THAT(first, ElementsAre(std::pair(0, 1), std::pair(1, 20), std::pair(2, 40),
                                 std::pair(3, 60), std::pair(4, 80)));
  for (const uint64_t batches : {1, 2, 3, 7}) {
    for (uint64_t done = 1; done <= batches; ++done)
      EXPECT_LE(fragments.DueAfter(done, batches), 4u);
    EXPECT_EQ(fragments.DueAfter(batches, batches), 4u) << batches;
  }
}

}  // namespace
}  // namespace shoal
