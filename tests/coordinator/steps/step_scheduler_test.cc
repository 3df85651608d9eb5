#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/coordinator/steps/step_scheduler_fixture.h"

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

TEST_F(StepSchedulerTest, AWorkerThatReopensItsStreamKeepsStepsAndSpeed) {
  workers_.on_reopened = [this](const Worker& former, Worker& now) {
    EXPECT_EQ(scheduler_.Move(former, now), 1u) << "one order was lost";
  };
  Worker& former = workers_.Join(0);
  Begin();
  OfferAll();
  Report(former, {0});
  Report(former, {1});
  const double step_seconds = former.step_seconds;
  ASSERT_GT(step_seconds, 0);
  ASSERT_EQ(scheduler_.steps().held(former.key), 2u);
  proto::WorkerReport report;
  report.mutable_reopening();
  workers_.Send(0, report);
  proto::WorkerHello hello;
  hello.set_timeline(kOpenTimeline);
  hello.add_held_steps(2);
  Worker& now = workers_.Join(0, hello);
  EXPECT_TRUE(scheduler_.steps().Holds(now.key, 2));
  EXPECT_EQ(now.step_seconds, step_seconds);
  EXPECT_EQ(now.steps_done, 2u);
  EXPECT_EQ(gone_, "");
  workers_.Join(1);
  OfferAll();
  EXPECT_THAT(workers_.Leases(1), testing::Not(testing::Contains(2)));
}

}  // namespace
}  // namespace shoal
