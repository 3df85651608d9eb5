// Evaluators that are absent, late, replaced or unfit for the job.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/crc32c.h"
#include "common/base/version.h"
#include "tests/common/metrics/sample_value.h"
#include "tests/coordinator/scripted_evaluator.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// It has outlived a coordinator whose job had another loss, or another test set.
TEST(TrainingEvaluatorPeerTest, AnEvaluatorOfAnotherJobIsRejectedAndCounted) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedEvaluator evaluator(&cluster);
  const uint32_t right = std::exchange(evaluator.job_fingerprint, 0x12345678);
  evaluator.GetReady();
  EXPECT_TRUE(evaluator.of_another_job);
  EXPECT_FALSE(evaluator.final) << "it is of use again, once it is started anew";
  EXPECT_THAT(evaluator.rejected, AllOf(HasSubstr("12345678"), HasSubstr(ChecksumText(right))));
  EXPECT_EQ(StatusOfEvaluator(cluster).state(), "lost");
  EXPECT_EQ(SampleValue(*cluster.run, "shoal_rejected_jobs_total", {"evaluator"}), 1);
  EXPECT_EQ(SampleValue(*cluster.run, "shoal_rejected_jobs_total", {"worker"}), 0);
  FinishEpoch(&cluster, cluster.Join(0));
  EXPECT_THAT(evaluator.orders, IsEmpty());
  ScriptedEvaluator again(&cluster, /*incarnation=*/2);
  again.GetReady();
  EXPECT_THAT(again.orders, Not(IsEmpty()));
}

TEST(TrainingEvaluatorPeerTest, WithoutOneWorkersEvaluateAsEver) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedWorker& worker = cluster.Join(0);
  FinishEpoch(&cluster, worker);
  EXPECT_THAT(worker.evaluations, Not(IsEmpty()));
  EXPECT_FALSE(std::filesystem::exists(cluster.run_dir() + "/evaluations.csv"));
  EXPECT_EQ(StatusOfEvaluator(cluster).type(), "");
}

// Opening its data takes as long as it takes.
TEST(TrainingEvaluatorPeerTest, OneThatIsNotReadyIsNotWaitedFor) {
  ScriptedCluster cluster(WithEarlyStopping());
  ScriptedEvaluator evaluator(&cluster);
  ScriptedWorker& worker = cluster.Join(0);
  FinishEpoch(&cluster, worker);
  EXPECT_THAT(worker.evaluations, Not(IsEmpty()));
}

TEST(TrainingEvaluatorPeerTest, OneThatIsKilledIsReplacedAndNothingCountsTwice) {
  ScriptedCluster cluster(WithEarlyStopping());
  auto first = std::make_unique<ScriptedEvaluator>(&cluster, 1);
  first->GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  FinishEpoch(&cluster, worker);
  first->Take();
  ASSERT_THAT(first->orders, ElementsAre(kEpochSteps));
  first->Die();
  EXPECT_EQ(StatusOfEvaluator(cluster).state(), "lost");
  cluster.Advance(seconds(5));
  EXPECT_THAT(worker.evaluations, IsEmpty()) << "it may come back";
  ScriptedEvaluator second(&cluster, 2);
  second.GetReady();
  ASSERT_THAT(second.orders, ElementsAre(kEpochSteps));
  const proto::EvaluateCheckpoint order = second.order;
  second.Finish(3);
  EXPECT_THAT(worker.leases, Not(IsEmpty()));
  // Once more, by mistake.
  second.order = order;
  second.Finish(5);
  EXPECT_THAT(EvaluatedSteps(cluster), ElementsAre(kEpochSteps));
  EXPECT_THAT(TestLosses(cluster), ElementsAre(3));
}

// A checkpoint at which every evaluator dies would else hold the training up for ever.
TEST(TrainingEvaluatorPeerTest, ACheckpointThatCrashesEvaluatorsGoesToWorkers) {
  ScriptedCluster cluster(WithEarlyStopping());
  ScriptedWorker& worker = cluster.Join(0);
  std::vector<std::unique_ptr<ScriptedEvaluator>> evaluators;
  for (uint64_t i = 0; i < 3; ++i) {
    evaluators.push_back(std::make_unique<ScriptedEvaluator>(&cluster, i));
    evaluators.back()->GetReady();
    if (i == 0) FinishEpoch(&cluster, worker);
    evaluators.back()->Take();
    ASSERT_THAT(evaluators.back()->orders, ElementsAre(kEpochSteps));
    EXPECT_THAT(worker.evaluations, IsEmpty());
    evaluators.back()->Die();
  }
  EXPECT_THAT(worker.evaluations, Not(IsEmpty()));
}

TEST(TrainingEvaluatorPeerTest, ASecondOneIsNotLetIn) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedEvaluator first(&cluster, 1);
  first.GetReady();
  ScriptedEvaluator second(&cluster, 2);
  EXPECT_FALSE(second.welcomed);
  EXPECT_THAT(second.rejected, HasSubstr("far, pid 7"));
  EXPECT_FALSE(second.final);
  first.Die();
  ScriptedEvaluator third(&cluster, 2);
  EXPECT_TRUE(third.welcomed);
}

TEST(TrainingEvaluatorPeerTest, AnEvaluatorUnfitForTheJobIsToldSo) {
  {
    ScriptedCluster cluster(WithTestSet());
    cluster.Join(0);
    ScriptedEvaluator evaluator(&cluster);
    evaluator.GetReady(49);
    EXPECT_THAT(evaluator.rejected, AllOf(HasSubstr(" 49 test "), HasSubstr("worker 0 ")));
    EXPECT_TRUE(evaluator.final);
  }
  {
    ScriptedCluster cluster(WithTestSet());
    ScriptedEvaluator evaluator(&cluster);
    evaluator.GetReady(49);
    EXPECT_THAT(evaluator.rejected, IsEmpty()) << "nobody knows better";
    ScriptedWorker& worker = cluster.Join(0);
    for (int i = 0; i < 7; ++i) cluster.FinishStep(worker);
    evaluator.Take();
    EXPECT_THAT(evaluator.rejected, HasSubstr(" with 50"));
    EXPECT_TRUE(evaluator.final);
  }
}

// Promise 7.
TEST(TrainingEvaluatorPeerTest, NonsenseIsRejectedAndHarmsNobody) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 7; ++i) cluster.FinishStep(worker);
  uint64_t incarnation = 0;
  const auto ready = [&] {
    auto evaluator = std::make_unique<ScriptedEvaluator>(&cluster, ++incarnation);
    evaluator->GetReady();
    return evaluator;
  };
  const auto twice = ready();
  proto::EvaluatorReport hello;
  hello.mutable_hello()->set_version(kVersion);
  twice->Send(hello);
  EXPECT_THAT(twice->rejected, HasSubstr("hello twice"));
  const auto few = ready();
  ASSERT_THAT(few->orders, ElementsAre(5));
  few->Finish(1, /*examples=*/3);
  EXPECT_THAT(few->rejected, HasSubstr(" 3 examples"));
  EXPECT_TRUE(few->final);
  const auto greedy = ready();
  ASSERT_THAT(greedy->orders, ElementsAre(5));
  EXPECT_THAT(greedy->Read("dense/kernel", 1u << 31), IsEmpty());
  EXPECT_THAT(greedy->rejected, HasSubstr("2147483648 bytes"));
  EXPECT_THAT(Lines(cluster), IsEmpty());
  EXPECT_THAT(worker.leases, Not(IsEmpty()));
}

TEST(TrainingEvaluatorPeerTest, AFailedRequestSaysNothingOfACheckpoint) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 7; ++i) cluster.FinishStep(worker);
  ScriptedEvaluator astray(&cluster, 1);
  astray.GetReady();
  ASSERT_THAT(astray.orders, ElementsAre(5));
  EXPECT_THAT(astray.Read("no/such", 4), IsEmpty());
  EXPECT_THAT(astray.rejected, HasSubstr("no/such"));
  EXPECT_TRUE(astray.final);
  ScriptedEvaluator beyond(&cluster, 2);
  beyond.GetReady();
  ASSERT_THAT(beyond.orders, ElementsAre(5));
  EXPECT_THAT(beyond.Read("dense/kernel", 1 << 20), IsEmpty());
  EXPECT_THAT(beyond.rejected, HasSubstr("dense/kernel"));
}

TEST(TrainingEvaluatorPeerTest, MoreBatchesThanTheTestSetHasAreNoHeadway) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 7; ++i) cluster.FinishStep(worker);
  ScriptedEvaluator endless(&cluster);
  endless.GetReady();
  ASSERT_THAT(endless.orders, ElementsAre(5));
  endless.SendProgress(4);
  EXPECT_THAT(endless.rejected, IsEmpty());
  endless.SendProgress(5);
  EXPECT_THAT(endless.rejected, HasSubstr("5 of 4 "));
}

}  // namespace
}  // namespace shoal
