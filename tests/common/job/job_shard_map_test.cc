#include "common/job/job_shard_map.h"

#include <gmock/gmock.h>

namespace shoal {
namespace {

using testing::HasSubstr;

// 4 MiB.
std::vector<Variable> Variables() { return {{.name = "w", .shape = {1024, 1024}}}; }

Job JobWith(int64_t min_shard_bytes, int64_t chunk_bytes) {
  Job job;
  job.optimizer = R"("sgd")";
  job.strategy.min_shard_bytes = min_shard_bytes;
  job.strategy.chunk_bytes = chunk_bytes;
  return job;
}

TEST(JobShardMapTest, TheJobSaysHowVariablesAreCut) {
  const auto large_shards = ShardMapOf(JobWith(4 << 20, 1 << 20), Variables(), 2);
  ASSERT_TRUE(large_shards.ok()) << large_shards.status();
  EXPECT_EQ(large_shards->ps(0).chunks.size(), 4u);
  EXPECT_EQ(large_shards->ps(1).chunks.size(), 0u);

  const auto small_shards = ShardMapOf(JobWith(1 << 20, 256 << 10), Variables(), 2);
  ASSERT_TRUE(small_shards.ok()) << small_shards.status();
  EXPECT_EQ(small_shards->ps(0).chunks.size(), 8u);
  EXPECT_EQ(small_shards->ps(1).chunks.size(), 8u);
}

// So that no task trains on with a typing error.
TEST(JobShardMapTest, TheMapHasTheExclusionsFromWeightDecay) {
  Job job = JobWith(1 << 20, 256 << 10);
  const auto excluding = [](const std::string& name) {
    return R"({"class_name": "AdamW", "config": {"exclude_from_weight_decay": [")" + name +
           R"("]}})";
  };
  job.optimizer = excluding("w");
  EXPECT_TRUE(ShardMapOf(job, Variables(), 2).ok());
  job.optimizer = excluding("v");
  const absl::Status wrong = ShardMapOf(job, Variables(), 2).status();
  EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("has \"v\""));
}

TEST(JobShardMapTest, NoVariableIsCutUnderAnOptimizerThatTakesThemWhole) {
  Job job = JobWith(1 << 20, 256 << 10);
  job.optimizer = R"("lamb")";
  const auto map = ShardMapOf(job, Variables(), 2);
  ASSERT_TRUE(map.ok()) << map.status();
  ASSERT_EQ(map->ps(0).chunks.size(), 1u);
  EXPECT_EQ(map->ps(0).chunks[0].size, 1024 * 1024);
  EXPECT_EQ(map->ps(1).chunks.size(), 0u);

  const auto large = ShardMapOf(job, {{.name = "embedding/embeddings", .shape = {30522, 768}}}, 2);
  EXPECT_TRUE(absl::IsInvalidArgument(large.status())) << large.status();
}

TEST(JobShardMapTest, NoTaskCutsThemSmallerThanAppliedSetsAllow) {
  Job job = JobWith(1 << 20, 64);
  job.strategy.window_steps = 1 << 20;
  const auto map = ShardMapOf(job, Variables(), 2);
  EXPECT_TRUE(absl::IsInvalidArgument(map.status())) << map.status();
  EXPECT_THAT(std::string(map.status().message()), HasSubstr("$.strategy.window_steps"));
}

}  // namespace
}  // namespace shoal
