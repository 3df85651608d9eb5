#include "coordinator/steps/step_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "coordinator/steps/round_rule.h"
#include "coordinator/steps/staleness_bound.h"
#include "tests/coordinator/steps/joined_workers.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;

constexpr uint64_t kOpenTimeline = 9;

class StepSchedulerTest : public testing::Test {
 protected:
  StepSchedulerTest() {
    workers_.on_gone = [this](Worker& worker, const std::string& why) {
      gone_ = why;
      scheduler_.Forget(worker);
    };
  }
  void Begin(uint64_t base = 0) {
    scheduler_.Open({.timeline = kOpenTimeline, .total_steps = 100, .base = base});
    scheduler_.Begin();
  }
  void OfferAll() {
    for (Worker* worker : workers_.membership()->Ready()) scheduler_.Offer(*worker);
    scheduler_.ServeQueue();
  }
  // It has reported the steps, each of which took so long; what follows.
  void Report(Worker& worker, const std::vector<uint64_t>& steps, Time each = milliseconds(200)) {
    loop_.Advance(each * steps.size());
    scheduler_.OnReport(worker, static_cast<int>(steps.size()));
    for (const uint64_t step : steps) EXPECT_TRUE(scheduler_.Done(worker, step));
    scheduler_.Offer(worker);
    scheduler_.ServeQueue();
  }
  static proto::Halted Halted(uint64_t begun_below) {
    proto::Halted halted;
    halted.set_timeline(kOpenTimeline);
    halted.set_begun_below(begun_below);
    return halted;
  }

  FakeLoop loop_;
  JoinedWorkers workers_{&loop_};
  std::string gone_;
  StepScheduler scheduler_{{.loop = &loop_,
                            .membership = workers_.membership(),
                            .window_steps = 64,
                            .lease_timeout_seconds = 10,
                            .speculate_after = 3}};
};

TEST_F(StepSchedulerTest, EachWorkerGetsTheLowestStepsAndTheNextBeforeItNeedsThem) {
  Worker& first = workers_.Join(0);
  workers_.Join(1);
  Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0, 1));
  EXPECT_THAT(workers_.Leases(1), ElementsAre(2, 3));
  EXPECT_THAT(scheduler_.TakeLeased(), ElementsAre(0, 2));
  EXPECT_THAT(scheduler_.TakeLeased(), IsEmpty());
  Report(first, {0});
  EXPECT_THAT(workers_.Leases(0), ElementsAre(4));
  EXPECT_FALSE(scheduler_.Done(first, 0)) << "once";
  EXPECT_EQ(scheduler_.counters().steps_leased, 5u);
  EXPECT_EQ(scheduler_.counters().steps_repeated, 1u);
}

TEST_F(StepSchedulerTest, AWorkerOfShortStepsHoldsAFifthOfASecondOfThem) {
  Worker& worker = workers_.Join(0);
  Begin();
  OfferAll();
  // The first report tells nothing: what came before it was no step.
  Report(worker, {0, 1}, milliseconds(10));
  EXPECT_EQ(scheduler_.steps().held(worker.key), 2u);
  // What is missing of 20 comes in portions of 5.
  for (int i = 0; i < 20; ++i) {
    Report(worker, {scheduler_.steps().base()}, milliseconds(10));
  }
  EXPECT_THAT(scheduler_.steps().held(worker.key), AllOf(Gt(15), Le(20)));
}

TEST_F(StepSchedulerTest, AStepThatTakesItsWorkerTooLongIsLeasedToAnother) {
  workers_.Join(0);
  Worker& second = workers_.Join(1);
  Begin();
  OfferAll();
  Report(second, {2});
  Report(second, {3});
  EXPECT_THAT(workers_.Leases(1), ElementsAre(2, 3, 4, 5)) << "400 ms are not three times 200";
  Report(second, {4});
  EXPECT_EQ(scheduler_.leased_twice(), 0u);
  Report(second, {5});
  EXPECT_EQ(scheduler_.leased_twice(), 1u);
  EXPECT_TRUE(scheduler_.steps().Holds(second.key, 0));
  scheduler_.Close();
  EXPECT_EQ(scheduler_.leased_twice(), 1u) << "of all timelines";
}

// Rounds of 4 steps, in epochs of 10.
class RoundSchedulerTest : public StepSchedulerTest {
 protected:
  void Begin(uint64_t base = 0, const std::vector<uint64_t>& done_after_base = {}) {
    scheduler_.Open({.timeline = kOpenTimeline,
                     .total_steps = 20,
                     .base = base,
                     .done_after_base = done_after_base,
                     .rule = std::make_unique<RoundRule>(rounds_),
                     .rounds = rounds_});
    scheduler_.Begin();
  }

  // It is known how long a step takes it.
  Worker& JoinOfPace(int index, double step_seconds) {
    Worker& worker = workers_.Join(index);
    worker.step_seconds = step_seconds;
    worker.steps_done = 10;
    return worker;
  }

  const RoundPlan rounds_{StepPlan(10, 1, 2, 0), 4};
};

TEST_F(RoundSchedulerTest, ALeaseSaysItsRound) {
  Worker& worker = workers_.Join(0);
  Begin(8);
  OfferAll();
  const auto orders = workers_.Orders(0);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].lease().first(), 8u);
  EXPECT_EQ(orders[0].lease().round().first(), 8u);
  EXPECT_EQ(orders[0].lease().round().count(), 2u) << "the epoch ends";
  EXPECT_EQ(orders[0].lease().round().number(), 2u);
  Report(worker, {8, 9});
  EXPECT_EQ(workers_.Orders(0)[0].lease().round().number(), 3u);
}

TEST_F(RoundSchedulerTest, WorkersShareARoundAndWaitForItsEnd) {
  Worker& first = workers_.Join(0);
  Worker& second = workers_.Join(1);
  Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0, 1));
  EXPECT_THAT(workers_.Leases(1), ElementsAre(2, 3));
  Report(second, {2, 3});
  EXPECT_THAT(workers_.Leases(1), IsEmpty());
  Report(first, {0, 1});
  EXPECT_THAT(workers_.Leases(1), ElementsAre(4, 5)) << "who was there first";
  EXPECT_THAT(workers_.Leases(0), ElementsAre(6, 7));
}

TEST_F(RoundSchedulerTest, AWorkerThatWaitedForARoundIsNotSlow) {
  Worker& first = workers_.Join(0);
  Worker& second = workers_.Join(1);
  Begin();
  OfferAll();
  Report(second, {2});
  Report(second, {3});
  EXPECT_EQ(second.step_seconds, 0.2);
  const auto leased_twice = [&] { return scheduler_.steps().Holds(second.key, 0); };
  for (int i = 0; i < 2000 && !leased_twice(); ++i) loop_.Advance(milliseconds(1));
  ASSERT_TRUE(leased_twice());
  Report(second, {0});
  EXPECT_NEAR(second.step_seconds, 0.2, 1e-3);
  Report(first, {1});
}

// Rounds of 4: 3 and 1 take 0.6 s with a worker of a third of the speed, 2 and 2 take 1.2 s.
TEST_F(RoundSchedulerTest, ASlowWorkerGetsWhatDoesNotHoldTheRoundUp) {
  Worker& slow = JoinOfPace(0, 0.6);
  Worker& fast = JoinOfPace(1, 0.2);
  Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0)) << "though it is the first in line";
  EXPECT_THAT(workers_.Leases(1), ElementsAre(1, 2));
  Report(fast, {1});
  EXPECT_THAT(workers_.Leases(1), ElementsAre(3));
  Report(fast, {2});
  Report(fast, {3}, milliseconds(200));
  Report(slow, {0}, milliseconds(0));
  EXPECT_THAT(workers_.Leases(0), ElementsAre(4));
  EXPECT_THAT(workers_.Leases(1), ElementsAre(5, 6)) << "who was passed over kept its place";
}

TEST_F(RoundSchedulerTest, ATooSlowWorkerIsTriedAgainAfterAWhile) {
  Worker& slow = JoinOfPace(0, 2.0);
  Worker& fast = JoinOfPace(1, 0.2);
  Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), IsEmpty());
  Report(fast, {0, 1});
  slow.last_report = loop_.Now() - seconds(101);
  workers_.Leases(1);
  Report(fast, {2, 3});
  EXPECT_THAT(workers_.Leases(0), ElementsAre(4));
  EXPECT_THAT(workers_.Leases(1), ElementsAre(5, 6));
  EXPECT_NEAR(slow.step_seconds, 2, 1e-9);
  Report(slow, {4}, milliseconds(100));
  EXPECT_NEAR(slow.step_seconds, 0.1, 1e-9) << "that is what it is now";
  EXPECT_THAT(workers_.Leases(0), ElementsAre(7));
}

TEST_F(RoundSchedulerTest, AWorkerThatStandsStillGetsNoneOfTheNextRound) {
  Worker& stopped = workers_.Join(0);
  Worker& other = workers_.Join(1);
  Begin();
  OfferAll();
  workers_.Leases(1);
  Report(other, {2});
  Report(other, {3});
  EXPECT_THAT(workers_.Leases(1), IsEmpty());
  loop_.Advance(milliseconds(100));
  EXPECT_THAT(workers_.Leases(1), IsEmpty()) << "500 ms are not three times 200";
  loop_.Advance(seconds(1));
  EXPECT_THAT(workers_.Leases(1), ElementsAre(0)) << "which nobody had to ask for";
  Report(other, {0});
  EXPECT_THAT(workers_.Leases(1), ElementsAre(1)) << "which the other has not begun";
  Report(other, {1});
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0, 1));
  EXPECT_THAT(workers_.Leases(1), ElementsAre(4, 5));
  // It is there again, and has done in vain what it had.
  loop_.Advance(seconds(1));
  scheduler_.OnReport(stopped, 2);
  EXPECT_FALSE(scheduler_.Done(stopped, 0));
  EXPECT_FALSE(scheduler_.Done(stopped, 1));
  scheduler_.Offer(stopped);
  scheduler_.ServeQueue();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(6, 7));
}

TEST_F(StepSchedulerTest, OneStepThatTakesLongSaysLittleOfTheNext) {
  Worker& worker = workers_.Join(0);
  Begin();
  OfferAll();
  Report(worker, {0});
  Report(worker, {1});
  EXPECT_EQ(worker.step_seconds, 0.2);
  Report(worker, {2}, seconds(20));
  EXPECT_NEAR(worker.step_seconds, 0.26, 1e-9);
}

TEST_F(RoundSchedulerTest, ACutWaitsForTheRestOfItsRound) {
  Worker& worker = workers_.Join(0);
  Begin();
  EXPECT_EQ(scheduler_.CutTarget(), 0u) << "nothing is leased";
  OfferAll();
  EXPECT_EQ(scheduler_.CutTarget(), 4u);
  EXPECT_EQ(scheduler_.KeepableBelow(), 0u);
  Report(worker, {0, 1});
  EXPECT_EQ(scheduler_.KeepableBelow(), 0u) << "no checkpoint has half a round";
  Report(worker, {2, 3});
  EXPECT_EQ(scheduler_.KeepableBelow(), 4u);
}

TEST_F(RoundSchedulerTest, WhereNobodyIsLeftACutIsBeforeTheRoundThatIsNotWhole) {
  Begin(5, {7});
  EXPECT_EQ(scheduler_.CutTarget(), 4u);
  workers_.Join(0);
  EXPECT_EQ(scheduler_.CutTarget(), 8u);
}

TEST_F(StepSchedulerTest, WorkersShareTheStepsThatTheRuleLetsOut) {
  workers_.Join(0);
  workers_.Join(1);
  scheduler_.Open(
      {.timeline = kOpenTimeline, .total_steps = 100, .rule = std::make_unique<StalenessBound>(1)});
  scheduler_.Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0));
  EXPECT_THAT(workers_.Leases(1), ElementsAre(1));
}

TEST_F(StepSchedulerTest, AStreamWithoutAHelloHasNoShare) {
  workers_.Join(0);
  workers_.Connect(1);
  scheduler_.Open(
      {.timeline = kOpenTimeline, .total_steps = 100, .rule = std::make_unique<StalenessBound>(1)});
  scheduler_.Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0, 1));
}

TEST_F(StepSchedulerTest, AWorkerThatMayHaveNoStepsHasNoShare) {
  workers_.Join(0);
  workers_.Join(1).ready = false;
  workers_.Join(2).lost_timeline = true;
  scheduler_.Open(
      {.timeline = kOpenTimeline, .total_steps = 100, .rule = std::make_unique<StalenessBound>(1)});
  scheduler_.Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0, 1));
  EXPECT_THAT(workers_.Leases(2), IsEmpty());
}

TEST_F(StepSchedulerTest, AWorkerThatDrainsGivesUpItsShare) {
  Worker& first = workers_.Join(0);
  Worker& second = workers_.Join(1);
  scheduler_.Open(
      {.timeline = kOpenTimeline, .total_steps = 100, .rule = std::make_unique<StalenessBound>(1)});
  scheduler_.Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0));
  second.ready = false;
  Report(second, {1});
  Report(first, {0});
  EXPECT_THAT(workers_.Leases(0), ElementsAre(2, 3));
}

TEST_F(StepSchedulerTest, NobodyGetsAStepBeforeTheBeginNorAfterTheEnd) {
  Worker& worker = workers_.Join(0);
  OfferAll();
  scheduler_.Open({.timeline = kOpenTimeline, .total_steps = 100});
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), IsEmpty());
  scheduler_.Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0, 1));
  scheduler_.End();
  Report(worker, {0, 1});
  scheduler_.Close();
  Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), IsEmpty());
}

TEST_F(StepSchedulerTest, AWorkerUnreadyOrOffTheTimelineGetsNothing) {
  workers_.Join(0).ready = false;
  workers_.Join(1).lost_timeline = true;
  workers_.Join(2);
  Begin();
  for (const auto& [key, worker] : workers_.membership()->workers()) scheduler_.Offer(*worker);
  scheduler_.ServeQueue();
  EXPECT_THAT(workers_.Leases(0), IsEmpty());
  EXPECT_THAT(workers_.Leases(1), IsEmpty());
  EXPECT_THAT(workers_.Leases(2), ElementsAre(0, 1));
}

// Below the limit there are fewer than are wanted.
TEST_F(StepSchedulerTest, WorkersTakeTurnsWhereThereAreTooFewSteps) {
  workers_.Join(0);
  workers_.Join(1);
  Begin();
  std::vector<std::vector<uint64_t>> got(2);
  for (uint64_t limit = 1; limit <= 4; ++limit) {
    scheduler_.steps().set_limit(limit);
    OfferAll();
    for (int i : {0, 1}) {
      for (const uint64_t step : workers_.Leases(i)) got[i].push_back(step);
    }
  }
  EXPECT_THAT(got[0], ElementsAre(0, 2));
  EXPECT_THAT(got[1], ElementsAre(1, 3));
}

TEST_F(StepSchedulerTest, LostStepsAreLeasedAgain) {
  workers_.Join(0);
  Begin();
  OfferAll();
  workers_.Leases(0);
  workers_.Break(0);
  workers_.Join(1);
  OfferAll();
  EXPECT_THAT(workers_.Leases(1), ElementsAre(0, 1));
  EXPECT_EQ(scheduler_.leased_again(), 2u);
  scheduler_.Close();
  EXPECT_EQ(scheduler_.leased_again(), 2u) << "of former timelines too";
}

TEST_F(StepSchedulerTest, AWorkerOfTheTimelineKeepsItsSteps) {
  proto::WorkerHello hello;
  hello.set_timeline(kOpenTimeline);
  hello.add_held_steps(1);
  Worker& successor = workers_.Join(0, hello);
  hello.set_timeline(kOpenTimeline + 1);
  hello.add_held_steps(0);
  Worker& stranger = workers_.Join(1, hello);
  Begin();
  scheduler_.Hold(successor);
  scheduler_.Hold(stranger);
  EXPECT_TRUE(scheduler_.steps().Holds(successor.key, 1));
  EXPECT_EQ(scheduler_.steps().held(stranger.key), 0u);
}

TEST_F(StepSchedulerTest, ASilentWorkerLosesItsStepsAndItsStream) {
  workers_.Join(0);
  Begin();
  OfferAll();
  loop_.Advance(seconds(9));
  scheduler_.DropSilent(/*patient=*/false);
  EXPECT_THAT(gone_, IsEmpty());
  loop_.Advance(seconds(2));
  scheduler_.DropSilent(/*patient=*/false);
  EXPECT_THAT(gone_, HasSubstr(" 10 s"));
  EXPECT_EQ(scheduler_.counters().lease_expiries, 1u);
  workers_.Join(1);
  OfferAll();
  EXPECT_THAT(workers_.Leases(1), ElementsAre(0, 1));
}

TEST_F(StepSchedulerTest, AComputingWorkerIsAwaitedOrToldOfTheField) {
  Worker& worker = workers_.Join(0);
  Begin();
  OfferAll();
  worker.waiting.set_what("computing step 0");
  worker.waiting.set_computing(true);
  for (int i = 0; i < 3; ++i) {
    loop_.Advance(seconds(8));
    worker.waiting_at = loop_.Now();
    scheduler_.DropSilent(/*patient=*/true);
  }
  EXPECT_THAT(gone_, IsEmpty());
  loop_.Advance(seconds(11));
  scheduler_.DropSilent(/*patient=*/false);
  EXPECT_THAT(gone_, HasSubstr("$.strategy.lease_timeout_seconds"));
  EXPECT_EQ(workers_.membership()->records().at(0).expiries, 1u);
}

TEST_F(StepSchedulerTest, BatchesOfAnEvaluationAreHandedOutBesideSteps) {
  Worker& worker = workers_.Join(0);
  Begin();
  scheduler_.BeginEvaluation(std::make_unique<Evaluation>(0, 13, 3, 0, seconds(10)));
  OfferAll();
  std::vector<uint64_t> batches, steps;
  for (const proto::WorkerOrder& order : workers_.Orders(0)) {
    if (order.has_lease()) steps.push_back(order.lease().first());
    if (!order.has_evaluate()) continue;
    EXPECT_EQ(order.evaluate().cut_step(), 13u);
    EXPECT_EQ(order.evaluate().timeline(), kOpenTimeline);
    batches.push_back(order.evaluate().batch());
  }
  EXPECT_THAT(batches, ElementsAre(0, 1));
  EXPECT_THAT(steps, ElementsAre(0));
  scheduler_.Release(worker);
  EXPECT_EQ(scheduler_.evaluation()->batches().held(worker.key), 0u);
  scheduler_.Close();
  EXPECT_EQ(scheduler_.evaluation(), nullptr);
}

TEST_F(StepSchedulerTest, StepsNotBegunAreRevokedOnceAllHaveReported) {
  Worker& first = workers_.Join(0);
  Worker& second = workers_.Join(1);
  Begin();
  OfferAll();
  workers_.Orders(0);
  workers_.Orders(1);
  EXPECT_FALSE(scheduler_.Revoke());
  EXPECT_TRUE(scheduler_.revoking());
  const auto halts = workers_.Orders(0);
  ASSERT_EQ(halts.size(), 1u) << "once";
  EXPECT_EQ(halts[0].halt().timeline(), kOpenTimeline);
  EXPECT_TRUE(scheduler_.OnHalted(first, Halted(1)));
  EXPECT_FALSE(scheduler_.OnHalted(first, Halted(1))) << "again";
  EXPECT_FALSE(scheduler_.Revoke());
  EXPECT_TRUE(scheduler_.OnHalted(second, Halted(2)));
  EXPECT_TRUE(scheduler_.Revoke());
  EXPECT_FALSE(scheduler_.revoking());
  EXPECT_EQ(scheduler_.steps().first_unleased(), 1u) << "only step 0 was begun";
  const auto orders = workers_.Orders(0);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].resume().below(), 1u);
}

TEST_F(StepSchedulerTest, AWorkerThatDoesNotReportKeepsItsSteps) {
  workers_.Join(0);
  Begin();
  OfferAll();
  EXPECT_FALSE(scheduler_.Revoke());
  loop_.Advance(seconds(1));
  EXPECT_TRUE(scheduler_.Revoke());
  EXPECT_EQ(scheduler_.steps().first_unleased(), 2u);
}

TEST_F(StepSchedulerTest, NobodyWaitsForAWorkerThatIsGone) {
  workers_.Join(0);
  Begin();
  OfferAll();
  EXPECT_FALSE(scheduler_.Revoke());
  workers_.Break(0);
  EXPECT_TRUE(scheduler_.Revoke());
}

// Its stream broke before it was told what it may do.
TEST_F(StepSchedulerTest, AReturningWorkerHearsWhatIsLeftAfterARevocation) {
  workers_.Join(0);
  Begin();
  OfferAll();
  scheduler_.Revoke();
  scheduler_.OnHalted(*workers_.Find(0), Halted(1));
  ASSERT_TRUE(scheduler_.Revoke());
  workers_.Break(0);
  proto::WorkerHello hello;
  hello.set_timeline(kOpenTimeline);
  for (const uint64_t step : {0, 1}) hello.add_held_steps(step);
  Worker& again = workers_.Join(0, hello);
  scheduler_.Hold(again);
  const auto orders = workers_.Orders(0);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].resume().below(), 1u);
  EXPECT_TRUE(scheduler_.steps().Holds(again.key, 0));
  EXPECT_FALSE(scheduler_.steps().Holds(again.key, 1));
}

}  // namespace
}  // namespace shoal
