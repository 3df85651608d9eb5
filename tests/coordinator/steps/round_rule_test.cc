#include "coordinator/steps/round_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>

#include "coordinator/steps/step_dispatcher.h"
#include "tests/coordinator/steps/dispatched_workers.h"
#include "tests/fakes/test_seed.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// 2 epochs of 10 steps; rounds of 4, 4 and 2.
StepDispatcher MakeInRounds(uint64_t base = 0, const std::vector<uint64_t>& done = {}) {
  return StepDispatcher({.total_steps = 20,
                         .window_steps = 64,
                         .lease_timeout = std::chrono::seconds(60),
                         .rule = std::make_unique<RoundRule>(RoundPlan(StepPlan(10, 1, 2, 0), 4))},
                        base, done);
}

// What a worker gets that asks for more than there is.
std::vector<uint64_t> Take(StepDispatcher& steps, StepDispatcher::WorkerKey worker) {
  const StepRun run = steps.Take(worker, 100, kNow);
  std::vector<uint64_t> taken;
  for (uint64_t i = 0; i < run.count; ++i) taken.push_back(run.first + i);
  return taken;
}

TEST(RoundRuleTest, NoStepIsLeasedBeforeAllRoundsBelowItsOwnAreDone) {
  StepDispatcher steps = MakeInRounds();
  EXPECT_THAT(Take(steps, kAnn), ElementsAre(0, 1, 2, 3));
  for (const uint64_t step : {1, 2, 3}) steps.Done(kAnn, step, kNow);
  EXPECT_THAT(Take(steps, kBob), IsEmpty()) << "step 0 is not done";
  steps.Done(kAnn, 0, kNow);
  EXPECT_THAT(Take(steps, kBob), ElementsAre(4, 5, 6, 7));
  for (const uint64_t step : {4, 5, 6, 7}) steps.Done(kBob, step, kNow);
  EXPECT_THAT(Take(steps, kAnn), ElementsAre(8, 9)) << "the epoch ends";
}

TEST(RoundRuleTest, AReturnedStepIsOfTheSameRound) {
  StepDispatcher steps = MakeInRounds();
  EXPECT_THAT(Take(steps, kAnn), ElementsAre(0, 1, 2, 3));
  steps.Done(kAnn, 1, kNow);
  steps.Release(kAnn);
  EXPECT_THAT(Take(steps, kBob), ElementsAre(0));
  EXPECT_THAT(Take(steps, kBob), ElementsAre(2, 3));
  EXPECT_THAT(Take(steps, kBob), IsEmpty());
}

TEST(RoundRuleTest, ATakeoverGoesOnWithinARound) {
  StepDispatcher steps = MakeInRounds(/*base=*/5, {6});
  EXPECT_THAT(Take(steps, kAnn), ElementsAre(5));
  EXPECT_THAT(Take(steps, kAnn), ElementsAre(7));
  EXPECT_THAT(Take(steps, kAnn), IsEmpty());
}

// Before it was known that step 1 had been done in no way.
TEST(RoundRuleTest, AReturningWorkerLosesAStepOfALaterRound) {
  StepDispatcher steps = MakeInRounds();
  Take(steps, kAnn);
  for (const uint64_t step : {0, 1, 2, 3}) steps.Done(kAnn, step, kNow);
  EXPECT_THAT(Take(steps, kBob), ElementsAre(4, 5, 6, 7));
  steps.Release(kBob);
  steps.Undo({1});
  for (const uint64_t step : {4, 5, 6, 7, 8}) steps.Hold(kBob, step, kNow);
  EXPECT_EQ(steps.held(kBob), 0u);
  steps.Hold(kBob, 1, kNow);
  EXPECT_TRUE(steps.Holds(kBob, 1));
  steps.Done(kBob, 1, kNow);
  EXPECT_THAT(Take(steps, kBob), ElementsAre(4, 5, 6, 7));
}

TEST(RoundRuleTest, NobodyIsTheSecondAtAStepOfALaterRound) {
  StepDispatcher steps = MakeInRounds();
  Take(steps, kAnn);
  for (const uint64_t step : {0, 1, 2, 3}) steps.Done(kAnn, step, kNow);
  EXPECT_THAT(Take(steps, kAnn), ElementsAre(4, 5, 6, 7));
  steps.Undo({1});
  const std::set<StepDispatcher::WorkerKey> anybody = {kAnn, kBob};
  EXPECT_EQ(steps.TakeSecond(kBob, anybody, kNow), std::nullopt);
  EXPECT_EQ(steps.UnleasedBelow(4), 1u);
  EXPECT_THAT(Take(steps, kBob), ElementsAre(1));
  EXPECT_EQ(steps.TakeSecond(kAnn, anybody, kNow), 1u);
  steps.Done(kBob, 1, kNow);
  EXPECT_EQ(steps.TakeSecond(kBob, anybody, kNow), 4u);
}

// Whatever workers do, all that is out at once is of one round, the first that is not done; and a
// run of steps never goes over its end.
TEST(RoundRuleTest, AllThatIsOutIsOfOneRound) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100; ++i) {
    const StepPlan plan(1 + random() % 40, 1, 1 + random() % 4, 0);
    const RoundPlan rounds(plan, 1 + random() % 9);
    StepDispatcher steps({.total_steps = plan.total_steps(),
                          .window_steps = 1 + random() % 50,
                          .lease_timeout = std::chrono::seconds(60),
                          .rule = std::make_unique<RoundRule>(rounds)},
                         0, {});
    std::map<StepDispatcher::WorkerKey, std::set<uint64_t>> held;
    for (int turn = 0; turn < 5000 && !steps.finished(); ++turn) {
      const StepDispatcher::WorkerKey worker = 1 + random() % 4;
      std::set<uint64_t>& its = held[worker];
      if (random() % 8 == 0) {
        steps.Release(worker);
        its.clear();
      } else if (random() % 2 == 0) {
        const StepRun run = steps.Take(worker, 1 + random() % 6, kNow);
        for (uint64_t k = 0; k < run.count; ++k) {
          its.insert(run.first + k);
          ASSERT_EQ(rounds.Of(run.first + k), rounds.Of(steps.base()));
        }
      } else if (!its.empty()) {
        steps.Done(worker, *its.begin(), kNow);
        its.erase(its.begin());
      }
    }
    ASSERT_TRUE(steps.finished()) << "it stands still at step " << steps.base();
  }
}

}  // namespace
}  // namespace shoal
