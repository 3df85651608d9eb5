#include "common/sharding/shard_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

int64_t Rows(const Variable& v) { return v.shape.empty() ? 1 : v.shape[0]; }
int64_t RowSize(const Variable& v) {
  return v.shape.empty() ? 1 : ElementCount(v.shape) / std::max<int64_t>(1, v.shape[0]);
}

constexpr UpdateRule kAverage = UpdateRule::kMovingAverage;

Variable Var(std::string name, Shape shape, UpdateRule rule = UpdateRule::kOptimizer) {
  return {.name = std::move(name), .shape = std::move(shape), .rule = rule, .initializer = {}};
}

struct Case {
  std::vector<Variable> variables;
  int ps_count = 1;
  ShardingOptions options;
};

Case RandomCase(std::mt19937_64& random) {
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Case c;
  c.ps_count = static_cast<int>(draw(1, 9));
  c.options = {.min_shard_bytes = draw(1, 5000), .chunk_bytes = draw(0, 4000)};
  c.options.whole_variables = draw(0, 3) == 0;
  const int64_t count = draw(0, 30);
  for (int64_t i = 0; i < count; ++i) {
    Shape shape;
    for (int64_t rank = draw(0, 3); rank > 0; --rank) shape.push_back(draw(1, 40));
    c.variables.push_back(Var(absl::StrCat("v", i), shape, static_cast<UpdateRule>(draw(0, 2))));
  }
  return c;
}

void CheckShards(const Case& c, const ShardMap& map) {
  std::vector<std::vector<int>> rows_seen;
  for (const Variable& v : c.variables) rows_seen.emplace_back(Rows(v), 0);
  std::vector<int64_t> part_rows_most(c.variables.size(), 0);
  std::vector<int64_t> part_rows_least(c.variables.size(), INT64_MAX);
  std::vector<int64_t> load;
  int64_t largest = 0;
  for (int p = 0; p < map.ps_count(); ++p) {
    load.push_back(0);
    std::map<int, int> parts_of;
    for (const Shard& shard : map.ps(p).shards) {
      const Variable& v = c.variables[shard.variable];
      const int64_t rows = shard.row_end - shard.row_begin;
      ASSERT_GT(rows, 0);
      for (int64_t r = shard.row_begin; r < shard.row_end; ++r) ++rows_seen[shard.variable][r];
      EXPECT_EQ(++parts_of[shard.variable], 1) << "two parts of one variable on one ps";
      load.back() += rows * RowSize(v);
      largest = std::max(largest, rows * RowSize(v));
      part_rows_most[shard.variable] = std::max(part_rows_most[shard.variable], rows);
      part_rows_least[shard.variable] = std::min(part_rows_least[shard.variable], rows);
      if (rows != Rows(v)) {
        EXPECT_GE(rows * RowSize(v) * 4, c.options.min_shard_bytes) << v.name;
      }
    }
  }
  for (size_t i = 0; i < c.variables.size(); ++i) {
    for (const int seen : rows_seen[i]) ASSERT_EQ(seen, 1) << c.variables[i].name;
    EXPECT_LE(part_rows_most[i] - part_rows_least[i], 1) << c.variables[i].name;
  }
  // Greedy balance, but for variables that must lie on distinct ps.
  bool any_split = false;
  for (size_t i = 0; i < c.variables.size(); ++i) {
    any_split |= part_rows_most[i] != Rows(c.variables[i]);
  }
  if (!any_split) {
    EXPECT_LE(
        *std::max_element(load.begin(), load.end()) - *std::min_element(load.begin(), load.end()),
        largest);
  }
}

void CheckChunks(const Case& c, const ShardMap& map) {
  const int64_t chunk_floats = std::max<int64_t>(16, c.options.chunk_bytes / 64 * 16);
  for (int p = 0; p < map.ps_count(); ++p) {
    const PsShards& ps = map.ps(p);
    std::map<std::pair<int, int64_t>, int> elements;  // of each variable
    int64_t end = 0;
    UpdateRule rule = UpdateRule::kOptimizer;
    for (const Chunk& chunk : ps.chunks) {
      EXPECT_EQ(chunk.slab_offset % 16, 0);
      EXPECT_GE(chunk.slab_offset, end);
      EXPECT_LT(chunk.slab_offset, end + 16);
      const bool whole = c.options.whole_variables && chunk.rule == UpdateRule::kOptimizer;
      EXPECT_TRUE(chunk.size <= chunk_floats || (whole && chunk.pieces.size() == 1)) << chunk.size;
      end = chunk.slab_offset + chunk.size;
      EXPECT_LE(end, ps.slab_size);
      EXPECT_GE(chunk.rule, rule) << "what has slots comes first, what is frozen last";
      rule = chunk.rule;
      int64_t size = 0;
      for (const ChunkPiece& piece : chunk.pieces) {
        EXPECT_EQ(c.variables[piece.variable].rule, chunk.rule);
        EXPECT_EQ(piece.chunk_offset, size);
        EXPECT_GT(piece.size, 0);
        if (whole) {
          EXPECT_EQ(piece.size, ElementCount(c.variables[piece.variable].shape));
        }
        size += piece.size;
        for (int64_t i = 0; i < piece.size; ++i) {
          ++elements[{piece.variable, piece.variable_offset + i}];
        }
        // The place in the slab follows from the shard, too.
        const auto shard = std::find_if(ps.shards.begin(), ps.shards.end(), [&](const Shard& s) {
          return s.variable == piece.variable;
        });
        ASSERT_NE(shard, ps.shards.end());
        EXPECT_EQ(shard->slab_offset + piece.variable_offset -
                      shard->row_begin * RowSize(c.variables[piece.variable]),
                  chunk.slab_offset + piece.chunk_offset);
      }
      EXPECT_EQ(size, chunk.size);
      EXPECT_GT(size, 0);
    }
    size_t expected = 0;
    for (const Shard& shard : ps.shards) {
      const int64_t row_size = RowSize(c.variables[shard.variable]);
      for (int64_t i = shard.row_begin * row_size; i < shard.row_end * row_size; ++i) {
        ASSERT_EQ((elements[{shard.variable, i}]), 1);
        ++expected;
      }
    }
    EXPECT_EQ(elements.size(), expected);
  }
}

TEST(ShardMapTest, RandomModelsLieSomewhereOnceBalancedAndAligned) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const Case c = RandomCase(random);
    const ShardMap map(c.variables, c.ps_count, c.options);
    ASSERT_EQ(map.ps_count(), c.ps_count);
    CheckShards(c, map);
    CheckChunks(c, map);
    EXPECT_EQ(map.ToText(), ShardMap(c.variables, c.ps_count, c.options).ToText());
    if (HasFailure()) return;
  }
}

TEST(ShardMapTest, SplitsAsMinSizePartitioner) {
  // 10 rows of 100 floats; 3 rows have 1200 bytes.
  const std::vector<Variable> variables = {Var("kernel", {10, 100})};
  const auto parts = [&](int ps_count, int64_t min_shard_bytes) {
    const ShardMap map(variables, ps_count, {.min_shard_bytes = min_shard_bytes});
    std::vector<int64_t> rows;
    for (int p = 0; p < ps_count; ++p) {
      for (const Shard& s : map.ps(p).shards) rows.push_back(s.row_end - s.row_begin);
    }
    return rows;
  };
  EXPECT_EQ(parts(4, 1200), (std::vector<int64_t>{4, 3, 3}));
  EXPECT_EQ(parts(4, 1201), (std::vector<int64_t>{5, 5}));
  EXPECT_EQ(parts(4, 1), (std::vector<int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(parts(4, 4000), (std::vector<int64_t>{10}));
  EXPECT_EQ(parts(4, 1 << 20), (std::vector<int64_t>{10}));
  EXPECT_EQ(parts(20, 1), (std::vector<int64_t>(10, 1)));
}

TEST(ShardMapTest, PartsOfOneVariableLieOnDistinctPsAndTheRestBalances) {
  const ShardMap map({Var("a", {4, 1000}), Var("b", {3000}), Var("c", {1000}), Var("d", {1000})}, 2,
                     {.min_shard_bytes = 8000});
  // Only a is split. b goes to ps 0, a's parts to both, c and d to ps 1.
  for (int p = 0; p < 2; ++p) {
    int64_t floats = 0;
    for (const Chunk& chunk : map.ps(p).chunks) floats += chunk.size;
    EXPECT_EQ(floats, p == 0 ? 5000 : 4000);
  }
}

TEST(ShardMapTest, SmallShardsShareAChunkAndALargeOneIsCut) {
  const ShardMap map(
      {Var("kernel", {25, 10}), Var("bias", {10}), Var("mean", {4}, kAverage),
       Var("fixed", {5}, UpdateRule::kFrozen), Var("scale", {10}), Var("variance", {4}, kAverage)},
      1, {.chunk_bytes = 100 * 4});
  // A chunk holds 96 floats: 96 + 96 + 58 of the kernel; both biases fit beside the rest.
  const PsShards& ps = map.ps(0);
  ASSERT_EQ(ps.chunks.size(), 5u);
  EXPECT_EQ(ps.chunks[0].size, 96);
  EXPECT_EQ(ps.chunks[1].size, 96);
  EXPECT_EQ(ps.chunks[2].size, 58 + 20);
  EXPECT_EQ(ps.chunks[2].pieces.size(), 3u);
  EXPECT_EQ(ps.chunks[3].size, 8);
  EXPECT_EQ(ps.chunks[3].rule, kAverage);
  EXPECT_EQ(ps.chunks[3].slab_offset, 96 + 96 + 80);
  EXPECT_EQ(ps.chunks[4].size, 5);
  EXPECT_EQ(ps.chunks[4].rule, UpdateRule::kFrozen);
}

TEST(ShardMapTest, MorePsThanVariables) {
  const ShardMap map({Var("scalar", {}), Var("none", {0, 5})}, 3, {});
  EXPECT_EQ(map.ps(0).chunks.size(), 1u);
  EXPECT_EQ(map.ps(0).chunks[0].size, 1);
  for (int p = 1; p < 3; ++p) {
    EXPECT_TRUE(map.ps(p).chunks.empty());
    EXPECT_EQ(map.ps(p).slab_size, 0);
  }
}

TEST(ShardMapTest, FingerprintTellsEverythingThatMatters) {
  const std::vector<Variable> base = {Var("a", {100, 10}), Var("b", {10})};
  const ShardingOptions options{.min_shard_bytes = 256, .chunk_bytes = 1024};
  std::vector<uint32_t> prints = {
      ShardMap(base, 2, options).Fingerprint(),
      ShardMap(base, 3, options).Fingerprint(),
      ShardMap(base, 2, {.min_shard_bytes = 1 << 20, .chunk_bytes = 1024}).Fingerprint(),
      ShardMap(base, 2, {.min_shard_bytes = 256, .chunk_bytes = 2048}).Fingerprint(),
      ShardMap(base, 2, {.min_shard_bytes = 1 << 20, .chunk_bytes = 1024, .whole_variables = true})
          .Fingerprint(),
      ShardMap({Var("a", {100, 11}), Var("b", {10})}, 2, options).Fingerprint(),
      ShardMap({Var("c", {100, 10}), Var("b", {10})}, 2, options).Fingerprint(),
      ShardMap({Var("a", {100, 10}), Var("b", {10}, kAverage)}, 2, options).Fingerprint(),
      ShardMap({Var("b", {10}), Var("a", {100, 10})}, 2, options).Fingerprint(),
  };
  EXPECT_EQ(prints[0], ShardMap(base, 2, options).Fingerprint());
  std::sort(prints.begin(), prints.end());
  EXPECT_EQ(std::unique(prints.begin(), prints.end()), prints.end());
}

}  // namespace
}  // namespace shoal
