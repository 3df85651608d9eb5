#include "coordinator/cuts/cut_plan.h"

#include <gmock/gmock.h>

namespace shoal {
namespace {

using std::chrono::seconds;

constexpr Time kCutTime = seconds(1000);

// 3 epochs of 100 steps.
CutPlan::Options Epochs(bool evaluates, uint64_t every_steps = 0, double every_seconds = 0) {
  return {.when = {.every_steps = every_steps, .every_seconds = every_seconds, .keep = 3},
          .plan = StepPlan(1000, 10, 3, 0),
          .evaluates = evaluates,
          .last = {.at = kCutTime},
          .now = kCutTime};
}

TEST(CutPlanTest, NoLeasePassesTheEndOfAnEpochThatIsEvaluated) {
  CutPlan plan(Epochs(/*evaluates=*/true));
  EXPECT_EQ(plan.mandatory(), 100u);
  EXPECT_FALSE(plan.Due(kCutTime, {.first_unleased = 50}, false, false).has_value());
  const auto due = plan.Due(kCutTime, {.first_unleased = 90, .leased = 4}, false, false);
  ASSERT_TRUE(due.has_value()) << "before leases get there";
  EXPECT_EQ(due->step, 100u);
  EXPECT_TRUE(due->hold);
  plan.Began(100, kCutTime);
  EXPECT_EQ(plan.mandatory(), 100u) << "until it is accepted";
  plan.Accepted(100, kCutTime);
  EXPECT_EQ(plan.mandatory(), 200u);
}

TEST(CutPlanTest, WhereResultsAreAwaitedNoLeasePassesBeforeTheDecision) {
  CutPlan::Options options = Epochs(/*evaluates=*/true);
  options.awaits_results = true;
  options.base = 100;
  CutPlan plan(options);
  EXPECT_EQ(plan.mandatory(), 100u) << "its epoch may have no result yet";
  plan.Began(100, kCutTime);
  plan.Accepted(100, kCutTime);
  EXPECT_EQ(plan.cut_epoch(), 0u);
  EXPECT_EQ(plan.mandatory(), 100u);
  plan.EpochDecided();
  EXPECT_EQ(plan.mandatory(), 200u);
}

TEST(CutPlanTest, WithoutATestSetOnlyTheEndOfTheJobMustBeCut) {
  CutPlan plan(Epochs(/*evaluates=*/false));
  EXPECT_EQ(plan.mandatory(), 300u);
  const auto due = plan.Due(kCutTime, {.first_unleased = 300}, false, false);
  ASSERT_TRUE(due.has_value());
  EXPECT_FALSE(due->hold);
}

TEST(CutPlanTest, AnEpochThatHasItsResultIsNotHeldAgain) {
  const CutPlan plan(Epochs(/*evaluates=*/true));
  EXPECT_FALSE(plan.Due(kCutTime, {.first_unleased = 100}, false, /*evaluated=*/true)->hold);
}

TEST(CutPlanTest, BeginsBehindWhatIsDone) {
  CutPlan::Options options = Epochs(/*evaluates=*/true);
  options.base = 200;
  options.last = {.step = 200, .at = kCutTime};
  const CutPlan plan(options);
  EXPECT_EQ(plan.epoch(), 2u);
  EXPECT_EQ(plan.mandatory(), 300u);
}

// Leases beyond a cut are withheld until it is accepted. On a slow disk that takes long.
TEST(CutPlanTest, ASlowLayoutIsAllowedFor) {
  CutPlan plan(Epochs(/*evaluates=*/false, /*every_steps=*/0, /*every_seconds=*/10));
  const CutPlan::Steps steps = {.first_unleased = 50, .leased = 4, .per_second = 20};
  EXPECT_EQ(plan.Due(kCutTime + seconds(10), steps, false, false)->step, 50u)
      << "nothing is known yet";
  plan.Began(50, kCutTime);
  plan.Accepted(50, kCutTime + seconds(1));
  const CutPlan::Steps later = {.first_unleased = 100, .leased = 4, .per_second = 20};
  EXPECT_EQ(plan.Due(kCutTime + seconds(20), later, false, false)->step, 140u) << "twice that long";
  EXPECT_EQ(plan.Due(kCutTime, later, /*asked=*/true, false)->step, 140u);
  const CutPlan::Steps near_the_end = {.first_unleased = 270, .leased = 4, .per_second = 20};
  EXPECT_EQ(plan.Due(kCutTime + seconds(20), near_the_end, false, false)->step, 300u);
}

TEST(CutPlanTest, EverySoManySteps) {
  CutPlan plan(Epochs(/*evaluates=*/false, /*every_steps=*/30));
  EXPECT_FALSE(plan.Due(kCutTime, {.first_unleased = 20}, false, false).has_value());
  EXPECT_EQ(plan.Due(kCutTime, {.first_unleased = 25}, false, false)->step, 30u);
  EXPECT_EQ(plan.Due(kCutTime, {.first_unleased = 44}, false, false)->step, 44u) << "late";
  plan.Began(44, kCutTime);
  EXPECT_FALSE(plan.Due(kCutTime, {.first_unleased = 60}, false, false).has_value());
  EXPECT_EQ(plan.Due(kCutTime, {.first_unleased = 70}, false, false)->step, 74u);
}

TEST(CutPlanTest, EverySoManySecondsIfThereWasAnyStep) {
  CutPlan plan(Epochs(/*evaluates=*/false, 0, /*every_seconds=*/2));
  EXPECT_FALSE(plan.Due(kCutTime + seconds(1), {.first_unleased = 5}, false, false).has_value());
  EXPECT_FALSE(plan.Due(kCutTime + seconds(3), {.first_unleased = 0}, false, false).has_value());
  EXPECT_EQ(plan.Due(kCutTime + seconds(3), {.first_unleased = 5}, false, false)->step, 5u);
}

// Whoever takes over goes on with the schedule.
TEST(CutPlanTest, CountsFromTheNewestCutOfBeforeThePlan) {
  CutPlan::Options options = Epochs(/*evaluates=*/false, /*every_steps=*/30, /*every_seconds=*/60);
  options.base = 40;
  options.last = {.step = 20, .at = kCutTime - seconds(50)};
  const CutPlan plan(options);
  EXPECT_EQ(plan.Due(kCutTime, {.first_unleased = 42}, false, false)->step, 50u);
  EXPECT_EQ(plan.Due(kCutTime, {.first_unleased = 55}, false, false)->step, 55u);
  options.when.every_steps = 0;
  const CutPlan by_time(options);
  EXPECT_FALSE(
      by_time.Due(kCutTime + seconds(9), {.first_unleased = 42}, false, false).has_value());
  EXPECT_EQ(by_time.Due(kCutTime + seconds(10), {.first_unleased = 42}, false, false)->step, 42u);
  options.last.failed = true;
  EXPECT_TRUE(CutPlan(options).Due(kCutTime, {.first_unleased = 42}, false, false).has_value());
}

TEST(CutPlanTest, ARequestIsServedAtOnce) {
  const CutPlan plan(Epochs(/*evaluates=*/false));
  EXPECT_EQ(plan.Due(kCutTime, {.first_unleased = 5}, /*asked=*/true, false)->step, 5u);
}

TEST(CutPlanTest, AfterAFailureItPausesAndTriesAgain) {
  CutPlan plan(Epochs(/*evaluates=*/false, /*every_steps=*/30));
  plan.Began(30, kCutTime);
  plan.Cancelled(30, std::nullopt, {.first_unleased = 32}, kCutTime);
  EXPECT_FALSE(plan.Due(kCutTime, {.first_unleased = 32}, false, false).has_value());
  EXPECT_EQ(plan.Due(kCutTime + kRetryCutAfter, {.first_unleased = 40}, false, false)->step, 40u);
  EXPECT_TRUE(plan.NeedsFreshTerm(30));
  EXPECT_FALSE(plan.NeedsFreshTerm(40));
}

TEST(CutPlanTest, AnEvaluationDoesNotWaitForADiskThatIsFull) {
  CutPlan plan(Epochs(/*evaluates=*/true, /*every_steps=*/30));
  plan.Began(90, kCutTime);
  plan.Cancelled(90, std::nullopt, {.first_unleased = 92}, kCutTime);
  const auto due = plan.Due(kCutTime, {.first_unleased = 95}, false, false);
  ASSERT_TRUE(due.has_value());
  EXPECT_TRUE(due->hold);
}

// After a takeover a ps may have applied more than was known.
TEST(CutPlanTest, AMandatoryCutThatCameTooLateGoesAboveWhatIsApplied) {
  CutPlan plan(Epochs(/*evaluates=*/true));
  plan.Began(100, kCutTime);
  plan.Cancelled(100, /*highest_step=*/103, {.first_unleased = 100}, kCutTime);
  EXPECT_EQ(plan.mandatory(), 104u);
  const auto due = plan.Due(kCutTime, {.first_unleased = 100}, false, false);
  ASSERT_TRUE(due.has_value()) << "at once";
  EXPECT_EQ(due->step, 104u);
  plan.Accepted(104, kCutTime);
  EXPECT_EQ(plan.mandatory(), 200u);
}

// A ps that rejects whatever it is asked must not be asked as fast as it answers.
TEST(CutPlanTest, RejectionsInARowGetPauses) {
  CutPlan plan(Epochs(/*evaluates=*/true));
  Time now = kCutTime;
  int tries = 0;
  for (uint64_t step = 100; now < kCutTime + seconds(20); now += std::chrono::milliseconds(1)) {
    const auto due = plan.Due(now, {.first_unleased = step}, /*asked=*/true, false);
    if (!due.has_value()) continue;
    step = due->step;
    ++tries;
    plan.Began(step, now);
    plan.Cancelled(step, /*highest_step=*/step, {.first_unleased = step}, now);
  }
  EXPECT_GT(tries, 8);
  EXPECT_LT(tries, 15);
  EXPECT_LE(plan.mandatory(), 300u);
  plan.Accepted(plan.mandatory(), now);
  plan.Began(200, now);
  plan.Cancelled(200, /*highest_step=*/203, {.first_unleased = 200}, now);
  EXPECT_TRUE(plan.Due(now, {.first_unleased = 200}, false, false).has_value()) << "at once again";
}

TEST(CutPlanTest, ACutThatFailedIsNotHeldAtOnceForAnEvaluation) {
  CutPlan plan(Epochs(/*evaluates=*/true));
  plan.Began(100, kCutTime);
  plan.Cancelled(100, std::nullopt, {.first_unleased = 100}, kCutTime);
  EXPECT_FALSE(plan.Due(kCutTime, {.first_unleased = 100}, /*asked=*/true, false).has_value());
  const auto due = plan.Due(kCutTime + kRetryCutAfter, {.first_unleased = 100}, false, false);
  ASSERT_TRUE(due.has_value());
  EXPECT_EQ(due->step, 100u);
  EXPECT_TRUE(due->hold);
}

// Rounds of 8 steps, in epochs of 100.
CutPlan::Options Rounds(bool evaluates, uint64_t every_steps) {
  CutPlan::Options options = Epochs(evaluates, every_steps);
  options.rounds.emplace(*options.plan, 8);
  return options;
}

TEST(CutPlanTest, CutsLieBetweenRounds) {
  CutPlan plan(Rounds(/*evaluates=*/true, /*every_steps=*/20));
  const auto due = plan.Due(kCutTime, {.first_unleased = 16, .leased = 4}, false, false);
  ASSERT_TRUE(due.has_value());
  EXPECT_EQ(due->step, 24u) << "20 is within a round";
  EXPECT_EQ(plan.Due(kCutTime, {.first_unleased = 40}, false, false)->step, 40u);
  EXPECT_EQ(plan.Due(kCutTime, {.first_unleased = 3}, /*asked=*/true, false)->step, 8u);
  EXPECT_EQ(plan.Due(kCutTime, {.first_unleased = 96}, false, false)->step, 100u)
      << "the end of an epoch is that of a round";
}

TEST(CutPlanTest, ACutThatCameTooLateIsTriedAgainBetweenRounds) {
  CutPlan plan(Rounds(/*evaluates=*/true, /*every_steps=*/0));
  plan.Began(100, kCutTime);
  plan.Cancelled(100, /*highest_step=*/104, {.first_unleased = 100}, kCutTime);
  EXPECT_EQ(plan.mandatory(), 108u);
}

}  // namespace
}  // namespace shoal
