// Synchronous rounds in a VariableStore (docs/protocol.md, section 13).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/common/base/fails_with.h"
#include "tests/ps/store/seeded_store.h"
#include "tests/ps/store/test_store.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Tensors = std::map<std::string, std::vector<float>>;

constexpr uint64_t kRoundSteps = 3;  // of a round

Round RoundOf(uint64_t step) {
  return {.first = step / kRoundSteps * kRoundSteps,
          .count = kRoundSteps,
          .number = step / kRoundSteps};
}

std::unique_ptr<VariableStore> StoreOfRounds(TestStoreOptions options = {}) {
  options.max_round_steps = kRoundSteps;
  return SeededStore(options);
}

// Of a step and a chunk; of many magnitudes.
Message WideGradient(const VariableStore& store, uint64_t step, int chunk) {
  std::mt19937_64 random(step * 100 + chunk);
  std::vector<float> values(store.chunk_size(chunk));
  for (float& value : values)
    value =
        std::ldexp(static_cast<float>(random() % 2000) - 1000, -static_cast<int>(random() % 20));
  return GradientMessage(values);
}

absl::StatusOr<PushResult> PushToRound(VariableStore* store, uint64_t step, int chunk) {
  const Round round = RoundOf(step);
  return store->Push(WideGradient(*store, step, chunk), step, chunk, round.first, round);
}

void PushRound(VariableStore* store, uint64_t number) {
  for (uint64_t step = number * kRoundSteps; step < (number + 1) * kRoundSteps; ++step) {
    for (int k = 0; k < PushedChunks(*store); ++k) ASSERT_TRUE(PushToRound(store, step, k).ok());
  }
}

std::vector<float> Version(const VariableStore& store, int chunk, uint64_t version) {
  const auto values = store.ReadVersion(chunk, version);
  EXPECT_TRUE(values.ok()) << values.status();
  if (!values.ok()) return {};
  EXPECT_EQ(values->version, version);
  return ToFloats(values->payload);
}

TEST(RoundTest, AChunkAppliesItsRoundOnceAndAsOneUpdate) {
  const auto optimizer = NumberingOptimizer::Make();
  const auto store = StoreOfRounds({.own_optimizer = optimizer});
  const std::vector<float> before = ToFloats(store->Read(0)->payload);
  for (uint64_t step = 0; step < 2 * kRoundSteps; ++step) {
    const auto result = PushToRound(store.get(), step, 0);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->repeated);
    EXPECT_EQ(result->staleness, 0u);
    EXPECT_EQ(result->version, (step + 1) / kRoundSteps * kRoundSteps) << "steps that are applied";
    EXPECT_EQ(store->chunk(0).version(), result->version);
  }
  EXPECT_THAT(optimizer->prepared, ElementsAre(1, 2)) << "the number of the round, from 1";
  const std::vector<float> after = ToFloats(store->Read(0)->payload);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_FLOAT_EQ(after[i], before[i] + 1 + 2);
  EXPECT_EQ(store->counters().applied, 2 * kRoundSteps);
}

// As after a restore: what counts is the round that is said, not how many there were here.
TEST(RoundTest, TheUpdateHasTheNumberOfTheRound) {
  const auto optimizer = NumberingOptimizer::Make();
  const auto store = StoreOfRounds({.own_optimizer = optimizer});
  store->SetApplied(10);  // rounds of an epoch of 5 steps: 3, 2, 3, 2
  const Round round = {.first = 10, .count = 2, .number = 4};
  for (uint64_t step = 10; step < 12; ++step)
    ASSERT_TRUE(store->Push(WideGradient(*store, step, 0), step, 0, 10, round).ok());
  EXPECT_THAT(optimizer->prepared, ElementsAre(5));
  EXPECT_EQ(store->chunk(0).version(), 12u);
}

// Gradients, samples of moving averages, several chunks, slots that depend on all before.
TEST(RoundTest, AnyOrderOfArrivalGivesTheSameBits) {
  const TestStoreOptions options{.optimizer = "\"adam\""};
  constexpr uint64_t kRounds = 4;
  const auto in_order = StoreOfRounds(options);
  for (uint64_t number = 0; number < kRounds; ++number) PushRound(in_order.get(), number);
  ASSERT_EQ(in_order->cut().Start(kRounds * kRoundSteps), std::nullopt);
  Tensors expected;
  CollectCut(*in_order, &expected);

  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto store = StoreOfRounds(options);
    for (uint64_t number = 0; number < kRounds; ++number) {
      std::vector<std::pair<uint64_t, int>> pushes;
      for (uint64_t step = number * kRoundSteps; step < (number + 1) * kRoundSteps; ++step) {
        for (int k = 0; k < PushedChunks(*store); ++k) pushes.push_back({step, k});
      }
      std::shuffle(pushes.begin(), pushes.end(), random);
      for (const auto& [step, chunk] : pushes) {
        ASSERT_TRUE(PushToRound(store.get(), step, chunk).ok());
        // Some twice, and what was in the round before.
        if (random() % 3 == 0) {
          ASSERT_TRUE(PushToRound(store.get(), step, chunk)->repeated);
        }
        if (number > 0) {
          ASSERT_TRUE(PushToRound(store.get(), step - kRoundSteps, chunk)->repeated);
        }
      }
    }
    ASSERT_EQ(store->cut().Start(kRounds * kRoundSteps), std::nullopt);
    Tensors tensors;
    CollectCut(*store, &tensors);
    ASSERT_EQ(tensors, expected) << "seed " << seed;
  }
}

// The one update that the mean of the samples makes is the mean of what each of them would make.
TEST(RoundTest, MovingAveragesTakeInTheMeanOfTheSamples) {
  const auto store = StoreOfRounds({.random_values = false});  // all 3
  const int chunk = PushedChunks(*store) - 1;
  ASSERT_EQ(store->options().shard_map.ps(0).chunks[chunk].rule, UpdateRule::kMovingAverage);
  for (uint64_t step = 0; step < kRoundSteps; ++step) {
    const std::vector<float> samples(store->chunk_size(chunk),
                                     kSample * static_cast<float>(step + 1));
    ASSERT_TRUE(store->Push(GradientMessage(samples), step, chunk, 0, RoundOf(step)).ok());
  }
  EXPECT_THAT(ToFloats(store->Read(chunk)->payload), testing::Each(3.0f + (1 + 2 + 3) / 3.0f));
}

TEST(RoundTest, RepeatedPushesAreDropped) {
  const auto store = StoreOfRounds();
  ASSERT_TRUE(PushToRound(store.get(), 1, 0).ok());
  EXPECT_TRUE(PushToRound(store.get(), 1, 0)->repeated) << "it is kept";
  ASSERT_TRUE(PushToRound(store.get(), 0, 0).ok());
  EXPECT_TRUE(PushToRound(store.get(), 0, 0)->repeated) << "it is in the sum";
  ASSERT_TRUE(PushToRound(store.get(), 2, 0).ok());
  const std::vector<float> values = ToFloats(store->Read(0)->payload);
  for (uint64_t step = 0; step < kRoundSteps; ++step)
    EXPECT_TRUE(PushToRound(store.get(), step, 0)->repeated) << "it is applied";
  EXPECT_EQ(store->chunk(0).version(), kRoundSteps);
  EXPECT_EQ(ToFloats(store->Read(0)->payload), values);
  EXPECT_EQ(store->counters().applied, kRoundSteps);
  EXPECT_EQ(store->counters().repeated, 5u);
}

TEST(RoundTest, WrongPushesAreNamedAndChangeNothing) {
  const auto store = StoreOfRounds({.window_steps = 64});
  PushRound(store.get(), 0);
  ASSERT_TRUE(PushToRound(store.get(), 4, 0).ok());
  const std::vector<float> values = ToFloats(store->Read(0)->payload);
  const auto message = [&store](uint64_t step, uint64_t pulled, std::optional<Round> round) {
    const auto result = store->Push(WideGradient(*store, step, 0), step, 0, pulled, round);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  };
  EXPECT_THAT(message(3, 3, std::nullopt), HasSubstr("no round,"));
  EXPECT_THAT(message(3, 2, RoundOf(3)), HasSubstr("version 2"));
  EXPECT_THAT(message(3, 3, Round{3, 2, 1}), HasSubstr("round 1 of 3 steps"));
  EXPECT_EQ(store->Push(WideGradient(*store, 67, 0), 67, 0, 3, Round{3, 65, 1}).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ToFloats(store->Read(0)->payload), values);
  EXPECT_EQ(store->chunk(0).version(), kRoundSteps);
  EXPECT_EQ(store->early_gradients(), 1u);

  const auto async = SeededStore();
  EXPECT_THAT(async->Push(WideGradient(*async, 0, 0), 0, 0, 0, RoundOf(0)).status(),
              FailsWith(absl::StatusCode::kInvalidArgument, {"no rounds"}));
}

// Whoever sends it was told that the round before is complete: it has done nothing wrong.
TEST(RoundTest, APushOfALaterRoundIsOutOfRange) {
  const auto store = StoreOfRounds();
  PushRound(store.get(), 0);
  ASSERT_TRUE(PushToRound(store.get(), 4, 0).ok());
  for (const uint64_t pulled : {3, 6}) {
    const auto result = store->Push(WideGradient(*store, 6, 0), 6, 0, pulled, RoundOf(6));
    EXPECT_THAT(result.status(), FailsWith(absl::StatusCode::kOutOfRange,
                                           {"chunk 0 of step 6: ", "version 6", " at 3"}));
  }
  EXPECT_EQ(store->chunk(0).version(), kRoundSteps);
  EXPECT_EQ(store->early_gradients(), 1u);
  ASSERT_TRUE(PushToRound(store.get(), 3, 0).ok());
  ASSERT_TRUE(PushToRound(store.get(), 5, 0).ok());
  EXPECT_TRUE(PushToRound(store.get(), 6, 0).ok());
}

TEST(RoundTest, StepsThatAreInCountBeforeTheyAreApplied) {
  const auto store = StoreOfRounds();
  PushRound(store.get(), 0);
  for (const uint64_t step : {3, 5}) {
    for (int k = 0; k < PushedChunks(*store); ++k)
      ASSERT_TRUE(PushToRound(store.get(), step, k).ok());
  }
  EXPECT_EQ(store->base(), 4u);
  EXPECT_THAT(store->AppliedAfterBase(), ElementsAre(5));
  EXPECT_EQ(store->updates().lowest, kRoundSteps);
  EXPECT_EQ(store->updates().highest, kRoundSteps);
}

TEST(RoundTest, TheVersionBeforeIsKeptUntilTheFirstPushOfTheNextRound) {
  const auto store = StoreOfRounds();
  const std::vector<float> first = Version(*store, 0, 0);
  for (uint64_t step = 0; step < kRoundSteps; ++step) {
    EXPECT_EQ(Version(*store, 0, 0), first) << "live";
    ASSERT_TRUE(PushToRound(store.get(), step, 0).ok());
  }
  const std::vector<float> second = Version(*store, 0, kRoundSteps);
  EXPECT_NE(second, first);
  EXPECT_EQ(Version(*store, 0, 0), first) << "kept";
  EXPECT_EQ(store->versions_before(), 1u);
  ASSERT_TRUE(PushToRound(store.get(), 1, 0)->repeated) << "proves nothing of the others";
  EXPECT_EQ(Version(*store, 0, 0), first);

  ASSERT_TRUE(PushToRound(store.get(), kRoundSteps + 1, 0).ok());
  EXPECT_EQ(Version(*store, 0, kRoundSteps), second);
  EXPECT_THAT(store->ReadVersion(0, 0).status(),
              FailsWith(absl::StatusCode::kOutOfRange, {"version 0 of chunk 0", " at 3"}));
  EXPECT_EQ(store->versions_before(), 0u);
}

TEST(RoundTest, AVersionThatIsNotThereYetIsAnError) {
  const auto store = StoreOfRounds();
  ASSERT_TRUE(PushToRound(store.get(), 0, 0).ok());
  EXPECT_THAT(
      store->ReadVersion(0, kRoundSteps).status(),
      FailsWith(absl::StatusCode::kFailedPrecondition, {"chunk 0: ", "version 3", " at 0"}));
  EXPECT_EQ(store->ReadVersion(99, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RoundTest, AFrozenChunkIsTheSameInEveryVersion) {
  const auto store = StoreOfRounds();
  const int frozen = PushedChunks(*store);
  ASSERT_LT(frozen, store->chunk_count());
  PushRound(store.get(), 0);
  const std::vector<float> values = ToFloats(store->Read(frozen)->payload);
  EXPECT_EQ(ToFloats(store->ReadVersion(frozen, kRoundSteps)->payload), values);
  EXPECT_EQ(ToFloats(store->ReadVersion(frozen, 0)->payload), values);
}

// By swapping buffers: there is one more for each chunk, and never a copy of the values.
TEST(RoundTest, KeepingTheVersionBeforeTakesOneSlabMore) {
  const auto store = StoreOfRounds();
  for (uint64_t number = 0; number < 10; ++number) {
    PushRound(store.get(), number);
    EXPECT_EQ(store->versions_before(), static_cast<size_t>(PushedChunks(*store)));
    EXPECT_LE(store->buffers().spare_count(), static_cast<size_t>(PushedChunks(*store)));
  }
}

TEST(RoundTest, ASnapshotStaysWhileRoundsGoOn) {
  const auto store = StoreOfRounds();
  PushRound(store.get(), 0);
  const ChunkSnapshot live = *store->Read(0), before = *store->ReadVersion(0, 0);
  const std::vector<float> live_values = ToFloats(live.payload);
  const std::vector<float> values_before = ToFloats(before.payload);
  for (uint64_t number = 1; number < 10; ++number) PushRound(store.get(), number);
  EXPECT_EQ(ToFloats(live.payload), live_values);
  EXPECT_EQ(ToFloats(before.payload), values_before);
}

}  // namespace
}  // namespace shoal
