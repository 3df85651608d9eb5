#include "ps/store/stored_chunk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/ps/store/test_store.h"

namespace shoal {
namespace {

using testing::Each;

// A chunk of 16 floats that begins with zeros, and the buffers that it lies in.
class StoredChunkTest : public testing::Test {
 protected:
  StoredChunk Make(uint64_t max_round_steps = 0) {
    ChunkState live{.values = buffers_.Take(0), .slots = {}};
    std::fill_n(live.values.data(), layout().size, 0.0f);
    return StoredChunk(
        {.layout = &layout(), .index = 0, .window_steps = 64, .max_round_steps = max_round_steps},
        std::move(live));
  }
  const Chunk& layout() const { return shard_map_.ps(0).chunks[0]; }

  // Replaces the values by the gradient of the update.
  void Apply(const ChunkUpdate& update, StoredChunk* chunk) {
    ValueBuffers::Hold target = buffers_.TargetOf(0, chunk->live().values);
    CopyPayload(*update.gradient, 0, target.data(), chunk->size() * sizeof(float));
    chunk->live().values = std::move(target);
    chunk->live().version = update.numbers.version;
  }

  const std::vector<Variable> variables_ = {{.name = "a", .shape = {16}}};
  const ShardMap shard_map_{variables_, 1, {}};
  ValueBuffers buffers_{shard_map_.ps(0)};
  const Message ones_ = GradientMessage(std::vector<float>(16, 1));
  const Message threes_ = GradientMessage(std::vector<float>(16, 3));
};

TEST_F(StoredChunkTest, AGradientIsDueAtOnceWithoutRounds) {
  StoredChunk chunk = Make();
  const ChunkPush push{.gradient = &ones_, .step = 2};
  ASSERT_TRUE(chunk.Check(push).ok());
  const std::optional<ChunkUpdate> due = chunk.Receive(push);
  ASSERT_TRUE(due.has_value());
  EXPECT_EQ(due->gradient, &ones_);
  EXPECT_EQ(due->numbers.version, 1u);
  EXPECT_EQ(due->numbers.iteration, 1u);
  Apply(*due, &chunk);
  chunk.MarkIn(2);
  EXPECT_TRUE(chunk.applied().Contains(2));
  EXPECT_EQ(chunk.applied_below(), 0u);
  EXPECT_EQ(chunk.applied_end(), 3u);
  EXPECT_THAT(chunk.values(), Each(1));
}

TEST_F(StoredChunkTest, StalenessCountsFromThePulledVersion) {
  StoredChunk chunk = Make();
  chunk.SetApplied(7);
  EXPECT_EQ(chunk.version(), 7u);
  const std::optional<ChunkUpdate> due =
      chunk.Receive({.gradient = nullptr, .step = 7, .pulled_version = 4});
  ASSERT_TRUE(due.has_value());
  EXPECT_EQ(due->gradient, nullptr) << "a skipped step is an update without a gradient";
  EXPECT_EQ(due->numbers.staleness, 3u);
  EXPECT_EQ(due->numbers.version, 8u);
}

TEST_F(StoredChunkTest, WrongPushesAreRejected) {
  StoredChunk chunk = Make();
  chunk.SetApplied(5);
  const auto code = [&](uint64_t step, uint64_t pulled, std::optional<Round> round = {}) {
    return chunk.Check({.gradient = &ones_, .step = step, .pulled_version = pulled, .round = round})
        .code();
  };
  EXPECT_EQ(code(5, 5), absl::StatusCode::kOk);
  EXPECT_EQ(code(4, 5), absl::StatusCode::kOk) << "it is applied: the caller drops it";
  EXPECT_EQ(code(5, 6), absl::StatusCode::kInvalidArgument) << "a version that is yet to come";
  EXPECT_EQ(code(5 + 64, 5), absl::StatusCode::kOutOfRange) << "beyond the window";
  EXPECT_EQ(code(5, 5, Round{5, 1, 5}), absl::StatusCode::kInvalidArgument) << "no rounds here";
}

TEST_F(StoredChunkTest, ARoundIsDueWithItsLastGradient) {
  StoredChunk chunk = Make(/*max_round_steps=*/2);
  const ChunkPush first{.gradient = &ones_, .step = 0, .round = Round{0, 2, 0}};
  const ChunkPush second{.gradient = &threes_, .step = 1, .round = Round{0, 2, 0}};
  ASSERT_TRUE(chunk.Check(second).ok());
  EXPECT_EQ(chunk.Receive(second), std::nullopt);
  chunk.MarkIn(1);
  EXPECT_EQ(chunk.early_gradients(), 1u);
  EXPECT_EQ(chunk.applied_end(), 0u) << "it is in, and not applied";
  const std::optional<ChunkUpdate> due = chunk.Receive(first);
  ASSERT_TRUE(due.has_value());
  EXPECT_EQ(due->numbers.version, 2u);
  EXPECT_EQ(due->numbers.iteration, 1u);
  Apply(*due, &chunk);
  chunk.MarkIn(0);
  EXPECT_THAT(chunk.values(), Each(2));
  EXPECT_EQ(chunk.applied_end(), 2u);
  EXPECT_EQ(chunk.early_gradients(), 0u);
}

TEST_F(StoredChunkTest, TheVersionBeforeStaysUntilTheNextRound) {
  StoredChunk chunk = Make(/*max_round_steps=*/2);
  for (const uint64_t step : {0, 1}) {
    if (const auto due = chunk.Receive({.gradient = &ones_, .step = step, .round = Round{0, 2, 0}}))
      Apply(*due, &chunk);
    chunk.MarkIn(step);
  }
  EXPECT_TRUE(chunk.keeps_version_before());
  EXPECT_TRUE(chunk.CheckVersion(0).ok());
  EXPECT_EQ(chunk.ValuesAt(0).data()[0], 0);
  EXPECT_EQ(chunk.ValuesAt(2).data()[0], 1);
  EXPECT_EQ(chunk.CheckVersion(4).code(), absl::StatusCode::kFailedPrecondition);
  chunk.Receive({.gradient = &ones_, .step = 2, .pulled_version = 2, .round = Round{2, 2, 1}});
  EXPECT_FALSE(chunk.keeps_version_before());
  EXPECT_EQ(chunk.CheckVersion(0).code(), absl::StatusCode::kOutOfRange);
}

TEST_F(StoredChunkTest, ALaterRoundWaitsForTheOneBefore) {
  const StoredChunk chunk = Make(/*max_round_steps=*/2);
  EXPECT_EQ(
      chunk.Check({.gradient = &ones_, .step = 2, .pulled_version = 2, .round = Round{2, 2, 1}})
          .code(),
      absl::StatusCode::kOutOfRange);
  EXPECT_EQ(chunk.Check({.gradient = &ones_, .step = 0}).code(), absl::StatusCode::kInvalidArgument)
      << "a push without a round";
}

}  // namespace
}  // namespace shoal
