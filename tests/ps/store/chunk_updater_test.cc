#include "ps/store/chunk_updater.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "tests/ps/store/test_store.h"

namespace shoal {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr int kOptimized = 0;  // chunks
constexpr int kAverage = 1;

// Two chunks of 16 floats: one that the optimizer updates, and a moving average of momentum 0.5.
class ChunkUpdaterTest : public testing::Test {
 protected:
  ChunkUpdater Make(std::shared_ptr<const Optimizer> optimizer, const RateScale& rate_scale = {},
                    uint64_t look_ahead = 0) {
    return ChunkUpdater({.variables = &variables_,
                         .shards = &shard_map_.ps(0),
                         .buffers = &buffers_,
                         .optimizer = std::move(optimizer),
                         .rate_scale = rate_scale,
                         .look_ahead = look_ahead});
  }
  // Learning rate 1.
  static std::shared_ptr<const Optimizer> Sgd(double momentum = 0) {
    return MakeOptimizer(CountingSgd(momentum)).value();
  }

  // A chunk of threes, with one slot of sevens if `with_slot`.
  ChunkState Threes(int chunk, bool with_slot = false) {
    ChunkState state{.values = buffers_.Take(chunk), .slots = {}};
    std::fill_n(state.values.data(), 16, 3.0f);
    if (with_slot) state.slots = {slots_.emplace_back(16, 7.0f).data()};
    return state;
  }
  static std::vector<float> Values(const ValueBuffers::Hold& values) {
    return {values.data(), values.data() + 16};
  }

  const std::vector<Variable> variables_ = {
      {.name = "kernel", .shape = {16}},
      {.name = "mean", .shape = {16}, .rule = UpdateRule::kMovingAverage, .momentum = 0.5}};
  const ShardMap shard_map_{variables_, 1, {.min_shard_bytes = 64, .chunk_bytes = 64}};
  ValueBuffers buffers_{shard_map_.ps(0)};
  std::deque<std::vector<float>> slots_;
  const Message ones_ = GradientMessage(std::vector<float>(16, 1));
};

TEST_F(ChunkUpdaterTest, ASkippedStepChangesTheVersionOnly) {
  ChunkUpdater updater = Make(Sgd(0.5));
  ChunkState state = Threes(kOptimized, /*with_slot=*/true);
  const float* const data = state.values.data();
  updater.Apply(kOptimized, {.gradient = nullptr, .numbers = {.version = 4, .iteration = 4}},
                &state);
  EXPECT_EQ(state.version, 4u);
  EXPECT_EQ(state.values.data(), data);
  EXPECT_THAT(Values(state.values), Each(3));
  EXPECT_THAT(slots_[0], Each(7));
}

TEST_F(ChunkUpdaterTest, UpdatesInPlaceWithoutAReader) {
  ChunkUpdater updater = Make(Sgd());
  ChunkState state = Threes(kOptimized);
  const float* const data = state.values.data();
  updater.Apply(kOptimized, {.gradient = &ones_, .numbers = {.version = 1, .iteration = 1}},
                &state);
  EXPECT_EQ(state.version, 1u);
  EXPECT_EQ(state.values.data(), data);
  EXPECT_THAT(Values(state.values), Each(2));
}

TEST_F(ChunkUpdaterTest, AReaderKeepsItsValues) {
  ChunkUpdater updater = Make(Sgd());
  ChunkState state = Threes(kOptimized);
  const ValueBuffers::Hold reader = state.values;
  updater.Apply(kOptimized, {.gradient = &ones_, .numbers = {.version = 1, .iteration = 1}},
                &state);
  EXPECT_THAT(Values(reader), Each(3));
  EXPECT_THAT(Values(state.values), Each(2));
}

TEST_F(ChunkUpdaterTest, TheOptimizerUpdatesTheSlots) {
  ChunkUpdater updater = Make(Sgd(0.5));
  ChunkState state = Threes(kOptimized, /*with_slot=*/true);
  updater.Apply(kOptimized, {.gradient = &ones_, .numbers = {.version = 1, .iteration = 1}},
                &state);
  EXPECT_THAT(slots_[0], Each(2.5f)) << "0.5 * 7 - 1";
  EXPECT_THAT(Values(state.values), Each(5.5f));
}

TEST_F(ChunkUpdaterTest, AMovingAverageTakesTheSample) {
  ChunkUpdater updater = Make(Sgd());
  ChunkState state = Threes(kAverage);
  updater.Apply(kAverage, {.gradient = &ones_, .numbers = {.version = 1, .iteration = 1}}, &state);
  EXPECT_EQ(state.version, 1u);
  EXPECT_THAT(Values(state.values), Each(2)) << "0.5 * 3 + 0.5 * 1";
}

TEST_F(ChunkUpdaterTest, TheOptimizerGetsTheIterationNotTheVersion) {
  const auto optimizer = NumberingOptimizer::Make();
  ChunkUpdater updater = Make(optimizer);
  ChunkState state = Threes(kOptimized);
  updater.Apply(kOptimized, {.gradient = &ones_, .numbers = {.version = 9, .iteration = 5}},
                &state);
  EXPECT_EQ(state.version, 9u);
  EXPECT_THAT(optimizer->prepared, ElementsAre(5));
  EXPECT_THAT(Values(state.values), Each(8));
}

TEST_F(ChunkUpdaterTest, TheRateScaleReadsTheStaleness) {
  ChunkUpdater updater = Make(Sgd(), {.by_staleness = true});
  ChunkState state = Threes(kOptimized);
  updater.Apply(kOptimized,
                {.gradient = &ones_, .numbers = {.version = 1, .iteration = 1, .staleness = 4}},
                &state);
  EXPECT_THAT(Values(state.values), Each(2.75f));
}

TEST_F(ChunkUpdaterTest, ItExtrapolatesByTheMomentum) {
  ChunkUpdater updater = Make(Sgd(0.5), {}, /*look_ahead=*/2);
  ChunkState state = Threes(kOptimized, /*with_slot=*/true);
  state.version = 1;
  const ValueBuffers::Hold expected = updater.Extrapolate(kOptimized, state);
  ASSERT_FALSE(expected.empty());
  EXPECT_THAT(Values(expected), Each(3 + 2 * 7));
  EXPECT_THAT(Values(state.values), Each(3));
  EXPECT_THAT(slots_[0], Each(7));
  EXPECT_EQ(state.version, 1u);
}

TEST_F(ChunkUpdaterTest, WithoutABasisItExtrapolatesNothing) {
  const auto empty = [this](std::shared_ptr<const Optimizer> optimizer, uint64_t look_ahead,
                            uint64_t version, bool with_slot) {
    ChunkUpdater updater = Make(std::move(optimizer), {}, look_ahead);
    ChunkState state = Threes(kOptimized, with_slot);
    state.version = version;
    return updater.Extrapolate(kOptimized, state).empty();
  };
  EXPECT_FALSE(empty(Sgd(0.5), 2, 1, true));
  EXPECT_TRUE(empty(Sgd(0.5), 0, 1, true)) << "no look-ahead";
  EXPECT_TRUE(empty(Sgd(0.5), 2, 0, true)) << "no update yet";
  EXPECT_TRUE(empty(Sgd(), 2, 1, false)) << "no slots";
  EXPECT_TRUE(empty(NumberingOptimizer::Make(), 2, 1, true)) << "no way to extrapolate";
}

}  // namespace
}  // namespace shoal
