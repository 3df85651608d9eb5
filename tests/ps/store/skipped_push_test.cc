// Skipped steps in a VariableStore: they count, and nothing else changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/ps/store/integer_gradient.h"
#include "tests/ps/store/seeded_store.h"
#include "tests/ps/store/test_store.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Tensors = std::map<std::string, std::vector<float>>;

PushResult PushOrSkip(VariableStore& store, uint64_t step, int chunk, bool skip) {
  const auto result = skip ? store.PushSkip(step, chunk, 0)
                           : store.Push(IntegerGradient(store, step, chunk), step, chunk, 0);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(PushResult());
}

class SkippedPushTest : public testing::Test {
 protected:
  // A momentum remembers each update.
  const TestStoreOptions options_{.optimizer = CountingSgd(0.5)};
};

TEST_F(SkippedPushTest, CountsAndChangesNothing) {
  const auto store = SeededStore(options_);
  for (int k = 0; k < PushedChunks(*store); ++k) PushOrSkip(*store, 0, k, /*skip=*/false);
  ASSERT_EQ(store->cut().Start(1), std::nullopt);
  Tensors before, after;
  CollectCut(*store, &before);
  store->cut().End();
  for (int k = 0; k < PushedChunks(*store); ++k) {
    const PushResult result = PushOrSkip(*store, 1, k, /*skip=*/true);
    EXPECT_TRUE(result.skipped);
    EXPECT_FALSE(result.repeated);
    EXPECT_EQ(result.version, 2u);
    EXPECT_EQ(result.staleness, 1u);
    EXPECT_EQ(store->Read(k)->version, 2u);
  }
  EXPECT_EQ(store->base(), 2u);
  ASSERT_EQ(store->cut().Start(2), std::nullopt);
  EXPECT_TRUE(store->cut().Ready());
  CollectCut(*store, &after);
  EXPECT_EQ(after, before) << "slots and moving averages, too";
  EXPECT_EQ(store->counters().skipped, static_cast<uint64_t>(PushedChunks(*store)));
  EXPECT_EQ(store->counters().applied, static_cast<uint64_t>(PushedChunks(*store)));
}

// Whichever of the two comes first is what the step was, there.
TEST_F(SkippedPushTest, IsDoneOnceWithTheOtherPushesOfItsStep) {
  const auto store = SeededStore(options_);
  const auto other = SeededStore(options_);
  PushOrSkip(*store, 0, 0, /*skip=*/true);
  EXPECT_TRUE(PushOrSkip(*store, 0, 0, /*skip=*/true).repeated);
  EXPECT_TRUE(PushOrSkip(*store, 0, 0, /*skip=*/false).repeated);
  EXPECT_EQ(ToFloats(store->Read(0)->payload), ToFloats(other->Read(0)->payload));
  PushOrSkip(*store, 0, 1, /*skip=*/false);
  PushOrSkip(*other, 0, 1, /*skip=*/false);
  EXPECT_TRUE(PushOrSkip(*store, 0, 1, /*skip=*/true).repeated);
  EXPECT_EQ(ToFloats(store->Read(1)->payload), ToFloats(other->Read(1)->payload));
  EXPECT_EQ(store->chunk(1).version(), 1u);
  EXPECT_EQ(store->counters().skipped, 1u);
  EXPECT_EQ(store->counters().repeated, 3u);
}

// As a checkpoint knows of the steps below it only how many they are.
TEST_F(SkippedPushTest, TheNextUpdateHasTheNumberOfItsStep) {
  const auto optimizer = NumberingOptimizer::Make();
  const auto store = SeededStore({.own_optimizer = optimizer});
  for (uint64_t step = 0; step < 4; ++step) PushOrSkip(*store, step, 0, /*skip=*/step % 2 == 1);
  EXPECT_THAT(optimizer->prepared, ElementsAre(1, 3));
}

// A cut among steps of which some are skipped, in the live chunks and in the copies, out of order:
// it has the updates of the steps below it.
TEST_F(SkippedPushTest, ACutHasTheSkippedStepsBelowIt) {
  const std::set<uint64_t> skipped = {1, 2, 5};
  constexpr uint64_t kCut = 4;
  const auto push = [&](VariableStore& store, uint64_t step, int chunk) {
    PushOrSkip(store, step, chunk, skipped.contains(step));
  };
  const auto serial = SeededStore(options_);
  for (uint64_t step = 0; step < kCut; ++step) {
    for (int k = 0; k < PushedChunks(*serial); ++k) push(*serial, step, k);
  }
  ASSERT_EQ(serial->cut().Start(kCut), std::nullopt);
  Tensors expected, cut;
  CollectCut(*serial, &expected);

  const auto store = SeededStore(options_);
  for (int k = 0; k < PushedChunks(*store); ++k) push(*store, 0, k);
  ASSERT_EQ(store->cut().Start(kCut), std::nullopt);
  for (int k = 0; k < PushedChunks(*store); ++k) {
    // In every other chunk, a skipped step is the first beyond the cut.
    for (const uint64_t step : {4 + k % 2, 2, 5 - k % 2, 1}) push(*store, step, k);
    EXPECT_FALSE(store->cut().Ready());
    push(*store, 3, k);
  }
  ASSERT_TRUE(store->cut().Ready());
  CollectCut(*store, &cut);
  EXPECT_EQ(cut, expected);
  for (int k = 0; k < PushedChunks(*store); ++k) {
    EXPECT_EQ(store->cut().Read(k, kCut)->version, kCut);
    EXPECT_EQ(store->chunk(k).version(), 6u);
  }
}

TEST_F(SkippedPushTest, WrongOnesAreNamedAndChangeNothing) {
  const auto store = SeededStore(options_);
  const int pushed = PushedChunks(*store);
  EXPECT_THAT(store->PushSkip(0, -1, 0).status().message(), HasSubstr("chunk -1"));
  EXPECT_THAT(store->PushSkip(0, pushed, 0).status().message(), HasSubstr("frozen"));
  EXPECT_THAT(store->PushSkip(0, 0, 1).status().message(), HasSubstr("version 1"));
  EXPECT_EQ(store->PushSkip(64, 0, 0).status().code(), absl::StatusCode::kOutOfRange);
  const auto in_rounds = SeededStore({.max_round_steps = 3});
  EXPECT_THAT(in_rounds->PushSkip(0, 0, 0).status().message(), HasSubstr("no round"));
  for (const auto& each : {store.get(), in_rounds.get()}) {
    EXPECT_EQ(each->chunk(0).version(), 0u);
    EXPECT_FALSE(each->chunk(0).applied().Contains(0));
    EXPECT_EQ(each->counters().skipped, 0u);
  }
}

}  // namespace
}  // namespace shoal
