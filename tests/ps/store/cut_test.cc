// The cut of a VariableStore: rules 5a, 5c, 6 and 7.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/common/base/fails_with.h"
#include "tests/ps/store/integer_gradient.h"
#include "tests/ps/store/seeded_store.h"
#include "tests/ps/store/test_store.h"

namespace shoal {
namespace {

using Tensors = std::map<std::string, std::vector<float>>;

void Push(VariableStore* store, uint64_t step, int chunk) {
  const auto result = store->Push(IntegerGradient(*store, step, chunk), step, chunk, 0);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_FALSE(result->repeated);
}

void PushStep(VariableStore* store, uint64_t step) {
  for (int k = 0; k < PushedChunks(*store); ++k) Push(store, step, k);
}

std::unique_ptr<VariableStore> StoreWithSteps(const TestStoreOptions& options, uint64_t steps) {
  auto store = SeededStore(options);
  for (uint64_t step = 0; step < steps; ++step) PushStep(store.get(), step);
  return store;
}

// What a cut must hold: a store that has applied the steps below it and no other.
Tensors Expected(const TestStoreOptions& options, uint64_t cut_step) {
  const auto store = StoreWithSteps(options, cut_step);
  EXPECT_EQ(store->cut().Start(cut_step), std::nullopt);
  EXPECT_TRUE(store->cut().Ready());
  Tensors tensors;
  CollectCut(*store, &tensors);
  return tensors;
}

TEST(CutTest, ReadyWhenEveryChunkHasTheStepsBelow) {
  const auto store = SeededStore();
  PushStep(store.get(), 0);
  EXPECT_FALSE(store->cut().Ready());
  ASSERT_EQ(store->cut().Start(2), std::nullopt);
  EXPECT_EQ(store->cut().step(), 2u);
  EXPECT_FALSE(store->cut().Ready());
  PushStep(store.get(), 2);
  for (int k = 0; k < PushedChunks(*store); ++k) {
    EXPECT_FALSE(store->cut().Ready());
    Push(store.get(), 1, k);
  }
  EXPECT_TRUE(store->cut().Ready());
  store->cut().End();
  EXPECT_FALSE(store->cut().Ready());
  EXPECT_EQ(store->cut().step(), std::nullopt);
}

TEST(CutTest, ALaterAppliedStepRejectsTheCut) {
  const auto store = SeededStore();
  Push(store.get(), 4, 1);
  EXPECT_EQ(store->cut().Start(4), 4u);
  EXPECT_EQ(store->cut().step(), std::nullopt);
  EXPECT_EQ(store->cut().Start(5), std::nullopt);
  EXPECT_NE(store->cut().Start(3), std::nullopt) << "rejected, and the older one goes on";
  EXPECT_EQ(store->cut().step(), 5u);
}

TEST(CutTest, NewerCutReplacesTheOlderOne) {
  const auto store = SeededStore({.random_values = false});
  ASSERT_EQ(store->cut().Start(1), std::nullopt);
  Push(store.get(), 1, 0);  // copies chunk 0
  ASSERT_EQ(store->cut().Start(2), std::nullopt);
  PushStep(store.get(), 0);
  for (int k = 1; k < PushedChunks(*store); ++k) Push(store.get(), 1, k);
  ASSERT_TRUE(store->cut().Ready());
  PushStep(store.get(), 2);
  Tensors cut;
  CollectCut(*store, &cut);
  EXPECT_EQ(cut, Expected({.random_values = false}, 2));
}

TEST(CutTest, HeldCutIsReadWhilePushesGoOn) {
  const auto store = SeededStore();
  EXPECT_THAT(store->cut().Read(0, 1).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, {"no cut", "step 1"}));
  ASSERT_EQ(store->cut().Start(1), std::nullopt);
  EXPECT_THAT(store->cut().Read(0, 1).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, {"not ready"}));
  PushStep(store.get(), 0);
  const ChunkSnapshot early =
      *store->cut().Read(0, 1);  // of the live chunk, as there is no copy yet
  const std::vector<float> values = ToFloats(early.payload);
  EXPECT_EQ(early.version, 1u);
  for (uint64_t step = 1; step < 20; ++step) PushStep(store.get(), step);
  EXPECT_EQ(ToFloats(early.payload), values);
  EXPECT_EQ(ToFloats(store->cut().Read(0, 1)->payload), values);
  EXPECT_EQ(store->cut().Read(0, 1)->version, 1u);
  EXPECT_NE(ToFloats(store->Read(0)->payload), values);
  EXPECT_FALSE(store->cut().Read(0, 2).ok());
  EXPECT_EQ(store->cut().Read(99, 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(store->cut().Read(PushedChunks(*store), 1).ok()) << "a frozen chunk";
}

// A written chunk needs no copy: not the one it has, and no later one.
TEST(CutTest, DroppedChunksAreNotCopied) {
  const auto store = SeededStore({.optimizer = CountingSgd(0.5)});
  ASSERT_EQ(store->cut().Start(1), std::nullopt);
  PushStep(store.get(), 0);
  Push(store.get(), 1, 0);
  EXPECT_EQ(CopiesOfCut(*store), 1u);
  store->cut().DropChunk(0);
  store->cut().DropChunk(1);
  EXPECT_EQ(CopiesOfCut(*store), 0u);
  EXPECT_EQ(store->cut().Read(0, 1).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(store->cut().Part(1, 0), testing::IsEmpty());
  EXPECT_THAT(store->cut().Part(1, 1), testing::IsEmpty());
  for (uint64_t step = 2; step < 5; ++step) {
    for (int k = 0; k < 2; ++k) Push(store.get(), step, k);
  }
  EXPECT_EQ(CopiesOfCut(*store), 0u);
  store->cut().End();
  for (int k = 1; k < PushedChunks(*store); ++k) Push(store.get(), 1, k);
  // The next cut holds everything again.
  for (int k = 2; k < PushedChunks(*store); ++k) {
    for (uint64_t step = 2; step < 5; ++step) Push(store.get(), step, k);
  }
  ASSERT_EQ(store->cut().Start(5), std::nullopt);
  for (int k = 0; k < PushedChunks(*store); ++k) Push(store.get(), 5, k);
  EXPECT_EQ(CopiesOfCut(*store), static_cast<size_t>(PushedChunks(*store)));
}

TEST(CutTest, AHeldCutKeepsItsValuesWithoutTheSlots) {
  const TestStoreOptions options{.optimizer = CountingSgd(0.5)};
  const auto store = StoreWithSteps(options, 1);
  ASSERT_EQ(store->cut().Start(1), std::nullopt);
  const std::vector<float> first = ToFloats(store->cut().Read(0, 1)->payload);
  const std::vector<float> second = ToFloats(store->cut().Read(1, 1)->payload);
  Push(store.get(), 1, 0);
  EXPECT_GT(SlotFloatsOfCut(*store), 0);
  for (int k = 0; k < store->chunk_count(); ++k) store->cut().DropSlots(k);
  EXPECT_EQ(SlotFloatsOfCut(*store), 0);
  Push(store.get(), 1, 1);
  for (uint64_t step = 2; step < 5; ++step) {
    for (int k = 0; k < 2; ++k) Push(store.get(), step, k);
  }
  EXPECT_EQ(ToFloats(store->cut().Read(0, 1)->payload), first);
  EXPECT_EQ(ToFloats(store->cut().Read(1, 1)->payload), second);
  EXPECT_EQ(SlotFloatsOfCut(*store), 0);
  EXPECT_THAT(store->cut().Part(0, 1), testing::IsEmpty());
  EXPECT_THAT(store->cut().Part(1, 1), testing::IsEmpty());
}

TEST(CutTest, ReaderOfAChunkBeforeTheCutIsNotDisturbedByTheCopy) {
  const auto store = SeededStore();
  const ChunkSnapshot reader = *store->Read(0);
  const std::vector<float> values = ToFloats(reader.payload);
  ASSERT_EQ(store->cut().Start(1), std::nullopt);
  Push(store.get(), 1, 0);  // 5a: the copy shares what is being read
  Push(store.get(), 0, 0);  // 5c: and is updated
  EXPECT_EQ(ToFloats(reader.payload), values);
}

// Which is known when it comes: the copy may be at a version before the one that was pulled.
TEST(CutTest, AStepHasTheSameLearningRateInTheCopy) {
  const auto store = SeededStore({.rate_scale = {.by_staleness = true}, .random_values = false});
  const auto push = [&](uint64_t step, int chunk, uint64_t pulled) {
    const std::vector<float> ones(store->chunk_size(chunk), 1);
    ASSERT_TRUE(store->Push(PushOf(*store, chunk, ones), step, chunk, pulled).ok());
  };
  ASSERT_EQ(store->cut().Start(1), std::nullopt);
  for (const int chunk : {0, 1}) {
    for (uint64_t step = 1; step <= 4; ++step) push(step, chunk, step - 1);
  }
  push(0, 0, 0);
  push(0, 1, 2);
  for (int chunk = 2; chunk < PushedChunks(*store); ++chunk) push(0, chunk, 0);
  ASSERT_TRUE(store->cut().Ready());
  EXPECT_FLOAT_EQ(ToFloats(store->cut().Read(0, 1)->payload)[0], 3 - 1.0f / 4);
  EXPECT_FLOAT_EQ(ToFloats(store->cut().Read(1, 1)->payload)[0], 3 - 1.0f / 2);
  EXPECT_FLOAT_EQ(ToFloats(store->Read(1)->payload)[0], 3 - 4 - 1.0f / 2);
}

using Pushes = std::vector<std::pair<uint64_t, int>>;  // step, chunk

// Every chunk of every step, out of order by a few steps, as several workers send them.
Pushes RandomPushes(uint64_t steps, int chunks, std::mt19937_64& random) {
  std::vector<std::pair<double, std::pair<uint64_t, int>>> ordered;
  for (uint64_t step = 0; step < steps; ++step) {
    for (int k = 0; k < chunks; ++k) {
      const double delay = static_cast<double>(random() % 4096) / 1024;
      ordered.push_back({static_cast<double>(step) + delay, {step, k}});
    }
  }
  std::sort(ordered.begin(), ordered.end());
  Pushes pushes;
  for (const auto& [key, push] : ordered) pushes.push_back(push);
  return pushes;
}

// A cut begins somewhere among the pushes, repeated ones and readers between them. It must hold
// what a store holds that has had only the pushes of steps below it, slots included.
void CheckRandomPushes(uint64_t seed, const TestStoreOptions& options) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const auto store = SeededStore(options);
  const int chunks = PushedChunks(*store);
  const uint64_t steps = 16;
  const Pushes pushes = RandomPushes(steps, chunks, random);

  uint64_t cut_step = 0;
  const size_t cut_at = random() % pushes.size();
  std::vector<ChunkSnapshot> readers;
  for (size_t i = 0; i < pushes.size(); ++i) {
    if (i == cut_at) {
      if (const auto highest = store->cut().Start(0)) cut_step = *highest + 1;
      cut_step = std::min(steps, cut_step + random() % 3);
      ASSERT_EQ(store->cut().Start(cut_step), std::nullopt);
    }
    const auto [step, chunk] = pushes[i];
    Push(store.get(), step, chunk);
    if (random() % 4 == 0) {
      ASSERT_TRUE(store->Push(IntegerGradient(*store, step, chunk), step, chunk, 0)->repeated);
    }
    if (random() % 2 == 0) readers.push_back(*store->Read(random() % chunks));
    if (readers.size() > 5) readers.erase(readers.begin() + random() % readers.size());
  }
  ASSERT_TRUE(store->cut().Ready());

  const auto reference = SeededStore(options);
  for (const auto& [step, chunk] : pushes) {
    if (step < cut_step) Push(reference.get(), step, chunk);
  }
  ASSERT_EQ(reference->cut().Start(cut_step), std::nullopt);
  ASSERT_TRUE(reference->cut().Ready());
  Tensors cut, expected;
  CollectCut(*store, &cut);
  CollectCut(*reference, &expected);
  ASSERT_EQ(cut, expected) << "cut at " << cut_step;
  if (options.optimizer == CountingSgd()) {
    ASSERT_EQ(cut, Expected(options, cut_step)) << "cut at " << cut_step;
    Tensors live, all;
    CollectValues(*store, &live);
    CollectValues(*StoreWithSteps(options, steps), &all);
    ASSERT_EQ(live, all);
  }
}

TEST(CutTest, HoldsExactlyTheStepsBelow) {
  for (uint64_t seed = 0; seed < 200 && !HasFailure(); ++seed) {
    CheckRandomPushes(
        seed, {.ps_index = static_cast<int>(seed % 2), .ps_count = 2, .random_values = false});
  }
}

TEST(CutTest, HoldsTheSlotsOfMomentum) {
  for (uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    CheckRandomPushes(seed, {.optimizer = CountingSgd(0.5)});
  }
}

TEST(CutTest, HoldsTheSlotsAndCountersOfAdam) {
  for (uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    CheckRandomPushes(seed, {.optimizer = "\"adam\""});
  }
}

}  // namespace
}  // namespace shoal
