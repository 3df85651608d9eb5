// The cut of a VariableStore whose steps come in rounds (docs/protocol.md, section 13).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/ps/store/seeded_store.h"
#include "tests/ps/store/test_store.h"

namespace shoal {
namespace {

using testing::HasSubstr;
using Tensors = std::map<std::string, std::vector<float>>;

constexpr uint64_t kSteps = 3;  // of a round
constexpr uint64_t kRounds = 5;

const TestStoreOptions kOptions = {.optimizer = "\"adam\"", .max_round_steps = kSteps};

Message ChunkGradient(const VariableStore& store, uint64_t step, int chunk) {
  std::mt19937_64 random(step * 100 + chunk);
  std::vector<float> values(store.chunk_size(chunk));
  for (float& value : values) value = static_cast<float>(random() % 1999) / 7 - 100;
  return GradientMessage(values);
}

absl::Status TryPush(VariableStore* store, uint64_t step, int chunk) {
  const uint64_t number = step / kSteps;
  const Round round = {.first = number * kSteps, .count = kSteps, .number = number};
  return store->Push(ChunkGradient(*store, step, chunk), step, chunk, round.first, round).status();
}

void PushInRound(VariableStore* store, uint64_t step, int chunk) {
  const absl::Status status = TryPush(store, step, chunk);
  ASSERT_TRUE(status.ok()) << status;
}

void PushSteps(VariableStore* store, uint64_t begin, uint64_t end) {
  for (uint64_t step = begin; step < end; ++step) {
    for (int k = 0; k < PushedChunks(*store); ++k) PushInRound(store, step, k);
  }
}

// What a cut must hold: a store that has the rounds below it and nothing else.
Tensors ExpectedInRounds(uint64_t cut_step) {
  const auto store = SeededStore(kOptions);
  PushSteps(store.get(), 0, cut_step);
  EXPECT_EQ(store->cut().Start(cut_step), std::nullopt);
  EXPECT_TRUE(store->cut().Ready());
  Tensors tensors;
  CollectCut(*store, &tensors);
  return tensors;
}

Tensors Cut(const VariableStore& store) {
  EXPECT_TRUE(store.cut().Ready());
  Tensors tensors;
  CollectCut(store, &tensors);
  return tensors;
}

TEST(RoundCutTest, ReadyWhenEveryChunkHasAppliedTheRoundsBelow) {
  const auto store = SeededStore(kOptions);
  PushSteps(store.get(), 0, 2);
  ASSERT_EQ(store->cut().Start(kSteps), std::nullopt);
  for (int k = 0; k < PushedChunks(*store); ++k) {
    EXPECT_FALSE(store->cut().Ready());
    PushInRound(store.get(), 2, k);
  }
  EXPECT_EQ(Cut(*store), ExpectedInRounds(kSteps));
}

// Where all leave in the middle of a round, the cut that it begins with is the last there can be.
TEST(RoundCutTest, EarlyGradientsAreInNoCut) {
  const auto store = SeededStore(kOptions);
  PushSteps(store.get(), 0, kSteps);
  PushSteps(store.get(), kSteps, 2 * kSteps - 1);
  ASSERT_EQ(store->cut().Start(kSteps), std::nullopt) << "nothing from it on is applied";
  EXPECT_EQ(Cut(*store), ExpectedInRounds(kSteps));
  PushSteps(store.get(), 2 * kSteps - 1, 2 * kSteps);
  EXPECT_EQ(Cut(*store), ExpectedInRounds(kSteps)) << "copied before the round was applied";
  EXPECT_EQ(CopiesOfCut(*store), static_cast<size_t>(PushedChunks(*store)));
  store->cut().End();
  ASSERT_EQ(store->cut().Start(2 * kSteps), std::nullopt);
  EXPECT_EQ(Cut(*store), ExpectedInRounds(2 * kSteps)) << "of which the copy kept nothing";
}

TEST(RoundCutTest, ALaterAppliedRoundRejectsTheCut) {
  const auto store = SeededStore(kOptions);
  PushSteps(store.get(), 0, kSteps);
  for (uint64_t step = kSteps; step < 2 * kSteps; ++step) PushInRound(store.get(), step, 1);
  PushInRound(store.get(), 2 * kSteps, 1);
  EXPECT_EQ(store->cut().Start(kSteps), 2 * kSteps - 1) << "the step above is in, not applied";
  EXPECT_EQ(store->cut().Start(2 * kSteps), std::nullopt);
}

// No coordinator fences there; if one did, no chunk would ever be at that step.
TEST(RoundCutTest, ACutWithinARoundIsNeverReady) {
  const auto store = SeededStore(kOptions);
  PushSteps(store.get(), 0, 2);
  ASSERT_EQ(store->cut().Start(2), std::nullopt);
  EXPECT_FALSE(store->cut().Ready()) << "what is in is not applied";
  EXPECT_THAT(TryPush(store.get(), 2, 0).message(),
              testing::AllOf(HasSubstr("chunk 0 of step 2: "), HasSubstr("steps 0 to 2"),
                             HasSubstr("at step 2")));
  EXPECT_FALSE(store->cut().Ready());
  ASSERT_EQ(store->cut().Start(kSteps), std::nullopt) << "another one replaces it";
  PushSteps(store.get(), 2, 3);
  EXPECT_EQ(Cut(*store), ExpectedInRounds(kSteps));
}

// A cut between two rounds begins somewhere among the pushes.
void CheckRandomRounds(uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const auto store = SeededStore(kOptions);
  const int chunks = PushedChunks(*store);
  std::vector<std::pair<uint64_t, int>> pushes;
  for (uint64_t number = 0; number < kRounds; ++number) {
    const auto begin = pushes.size();
    for (uint64_t step = number * kSteps; step < (number + 1) * kSteps; ++step) {
      for (int k = 0; k < chunks; ++k) pushes.push_back({step, k});
    }
    std::shuffle(pushes.begin() + begin, pushes.end(), random);
  }
  uint64_t cut_step = 0;
  const size_t cut_at = random() % pushes.size();
  std::vector<ChunkSnapshot> readers;
  for (size_t i = 0; i < pushes.size(); ++i) {
    if (i == cut_at) {
      if (const auto highest = store->cut().Start(0)) cut_step = *highest + 1;
      ASSERT_EQ(cut_step % kSteps, 0u);
      cut_step = std::min(kRounds * kSteps, cut_step + random() % 3 * kSteps);
      ASSERT_EQ(store->cut().Start(cut_step), std::nullopt);
    }
    const auto [step, chunk] = pushes[i];
    PushInRound(store.get(), step, chunk);
    if (random() % 2 == 0) readers.push_back(*store->Read(random() % chunks));
    if (readers.size() > 5) readers.erase(readers.begin() + random() % readers.size());
  }
  ASSERT_EQ(Cut(*store), ExpectedInRounds(cut_step)) << "cut at " << cut_step;
  Tensors live, all;
  CollectValues(*store, &live);
  const auto whole = SeededStore(kOptions);
  PushSteps(whole.get(), 0, kRounds * kSteps);
  CollectValues(*whole, &all);
  ASSERT_EQ(live, all);
}

TEST(RoundCutTest, HoldsExactlyTheRoundsBelow) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CheckRandomRounds(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace shoal
