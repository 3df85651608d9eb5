// WorkerReports::OnReady: a worker says that it is ready.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/worker_reports_fixture.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(WorkerReportsTest, TheFirstReadyWorkerBeginsTheTraining) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  const Worker& worker = Ready(0);
  EXPECT_TRUE(worker.ready);
  EXPECT_EQ(StateOf(0), State::kUp);
  EXPECT_EQ(parts_->plan->examples(), kExamples);
  EXPECT_TRUE(parts_->worker_came);
  EXPECT_TRUE(parts_->training());
  EXPECT_EQ(Announced(0), parts_->timeline());
  EXPECT_THAT(parts_->reported, ElementsAre(worker.key));
  EXPECT_THAT(TakeCauses(), Contains(Cause::kFacts));
}

TEST_F(WorkerReportsTest, AFurtherWorkerIsOneReport) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  TakeCauses();
  const Worker& worker = Ready(1);
  EXPECT_THAT(parts_->reported, Contains(worker.key));
  EXPECT_THAT(TakeCauses(), ElementsAre(Cause::kReports));
}

TEST_F(WorkerReportsTest, AWorkerOfAnotherShardMapIsRejected) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Connect(0);
  workers_.SendHello(0);
  SendReady(0, {.shard_map = parts_->shard_map->Fingerprint() + 1});
  EXPECT_TRUE(Rejected(0));
  EXPECT_FALSE(parts_->worker_came);
}

TEST_F(WorkerReportsTest, AWorkerWithoutTrainingExamplesIsRejected) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Connect(0);
  workers_.SendHello(0);
  SendReady(0, {.training = 0});
  EXPECT_TRUE(Rejected(0));
}

TEST_F(WorkerReportsTest, AFirstWorkerWithAnUnknownTestSetIsRejected) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Connect(0);
  workers_.SendHello(0);
  SendReady(0, {.test = kTestExamples});
  EXPECT_TRUE(Rejected(0));
  EXPECT_FALSE(parts_->plan.has_value());
}

TEST_F(WorkerReportsTest, AWorkerWithOtherCountsThanThePlanIsRejected) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  for (const Seen& seen : {Seen{.training = kExamples - 1}, Seen{.test = 1}}) {
    workers_.Connect(1);
    workers_.SendHello(1);
    SendReady(1, seen);
    EXPECT_TRUE(Rejected(1));
  }
  EXPECT_EQ(parts_->plan->examples(), kExamples);
}

TEST_F(WorkerReportsTest, AFurtherWorkerKeepsTheStepsThatItHolds) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  proto::WorkerHello hello;
  hello.set_timeline(parts_->timeline());
  hello.add_held_steps(3);
  EXPECT_TRUE(parts_->scheduler->steps().Holds(Ready(1, hello).key, 3));
}

TEST_F(WorkerReportsTest, AWorkerThatWasToldToDrainDoesNotGetReady) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Connect(0);
  workers_.SendHello(0);
  parts_->membership->record(*workers_.Find(0)).state = State::kDraining;
  SendReady(0, Seen());
  EXPECT_FALSE(workers_.Find(0)->ready);
  EXPECT_EQ(StateOf(0), State::kDraining);
}

TEST_F(WorkerReportsTest, WithoutATimelineAReadyWorkerWaits) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  timeline_->OnOver("a ps was started again");
  const Worker& worker = Ready(0);
  EXPECT_TRUE(worker.ready);
  EXPECT_TRUE(parts_->worker_came);
  EXPECT_FALSE(parts_->training());
  EXPECT_EQ(Announced(0), 0u);
}

TEST_F(WorkerReportsTest, AtTheEndOfTheJobAReadyWorkerGetsNoWork) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Connect(0);
  workers_.SendHello(0);
  parts_->shutdown->Fail("the values are not finite");
  workers_.Orders(0);
  SendReady(0, Seen());
  EXPECT_EQ(Announced(0), 0u);
  EXPECT_THAT(parts_->reported, IsEmpty());
}

}  // namespace
}  // namespace shoal
