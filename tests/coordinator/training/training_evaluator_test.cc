// A run with an evaluator: what is left to it, what becomes of what it finds, and that nobody waits
// for one that is not there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/version.h"
#include "common/run/evaluations.h"
#include "tests/common/base/file_content.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/common/metrics/sample_value.h"
#include "tests/coordinator/scripted_evaluator.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST(TrainingEvaluatorTest, EachCheckpointIsEvaluatedAndWorkersEvaluateNothing) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedEvaluator evaluator(&cluster);
  EXPECT_TRUE(evaluator.welcomed);
  evaluator.GetReady();
  EXPECT_THAT(evaluator.orders, IsEmpty()) << "there is no checkpoint";
  EXPECT_EQ(StatusOfEvaluator(cluster).state(), "up");
  ScriptedWorker& worker = cluster.Join(0);
  double loss = 3;
  while (!worker.job_done || evaluator.order.evaluation() != 0) {
    if (!worker.leases.empty()) cluster.FinishStep(worker);
    evaluator.Take();
    if (evaluator.order.evaluation() == 0) continue;
    EXPECT_THAT(evaluator.Read(), SizeIs(16));
    evaluator.SendProgress(3);
    EXPECT_THAT(StatusOfEvaluator(cluster).detail(), HasSubstr("3 of 4 "));
    evaluator.Finish(loss -= 0.25);
  }
  cluster.Disconnect(worker);
  evaluator.Take();
  EXPECT_THAT(worker.evaluations, IsEmpty());
  EXPECT_EQ(SampleValue(*cluster.run, "shoal_evaluation_batches_total"), 0);
  EXPECT_THAT(evaluator.orders, Contains(kEpochSteps));
  EXPECT_THAT(evaluator.orders, Contains(2 * kEpochSteps));
  EXPECT_THAT(evaluator.orders, SizeIs(Gt(3u)));
  EXPECT_TRUE(evaluator.job_done);
  evaluator.Die();
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(cluster.over->ok()) << *cluster.over;

  // What it found is in both files, under the checkpoint that it is of.
  EXPECT_EQ(EvaluatedSteps(cluster), evaluator.orders);
  for (const CheckpointResult& line : Lines(cluster)) {
    EXPECT_EQ(line.examples, kTestExamples);
    EXPECT_THAT(line.metrics, SizeIs(1));
    EXPECT_EQ(line.metrics[0].second, 0.25);
    if (line.step % kEpochSteps != 0) continue;
    EXPECT_EQ(TestLosses(cluster).at(line.epoch), line.loss);
  }
  const proto::StatusReply status = cluster.run->Status();
  ASSERT_EQ(status.best_size(), 1);
  EXPECT_EQ(status.best(0).figure(), "val_loss");
  EXPECT_EQ(status.best(0).value(), loss);
  EXPECT_EQ(ScriptedEvaluator::Step(std::filesystem::path(status.best(0).directory()).filename()),
            evaluator.orders.back());
}

// It has outlived a coordinator whose job had another loss, or another test set.
TEST(TrainingEvaluatorTest, AnEvaluatorOfAnotherJobIsRejectedAndCounted) {
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

TEST(TrainingEvaluatorTest, WithoutOneWorkersEvaluateAsEver) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedWorker& worker = cluster.Join(0);
  FinishEpoch(&cluster, worker);
  EXPECT_THAT(worker.evaluations, Not(IsEmpty()));
  EXPECT_FALSE(std::filesystem::exists(cluster.run_dir() + "/evaluations.csv"));
  EXPECT_EQ(StatusOfEvaluator(cluster).type(), "");
}

// Opening its data takes as long as it takes.
TEST(TrainingEvaluatorTest, OneThatIsNotReadyIsNotWaitedFor) {
  ScriptedCluster cluster(WithEarlyStopping());
  ScriptedEvaluator evaluator(&cluster);
  ScriptedWorker& worker = cluster.Join(0);
  FinishEpoch(&cluster, worker);
  EXPECT_THAT(worker.evaluations, Not(IsEmpty()));
}

TEST(TrainingEvaluatorTest, TrainingDoesNotWaitWhereNothingIsDecided) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  FinishEpoch(&cluster, worker);
  FinishEpoch(&cluster, worker);
  EXPECT_TRUE(worker.job_done) << "though nothing has been evaluated";
  evaluator.Take();
  EXPECT_THAT(evaluator.orders, Not(IsEmpty()));
}

TEST(TrainingEvaluatorTest, WhereTheResultDecidesTrainingWaitsForIt) {
  ScriptedCluster cluster(WithEarlyStopping());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  const std::vector<double> losses = {3, 2, 2.5, 2.6};
  for (size_t epoch = 0; epoch < losses.size(); ++epoch) {
    FinishEpoch(&cluster, worker);
    evaluator.Take();
    EXPECT_THAT(worker.leases, IsEmpty());
    EXPECT_THAT(worker.evaluations, IsEmpty());
    cluster.Advance(seconds(30));
    EXPECT_THAT(worker.leases, IsEmpty());
    const proto::StatusReply status = cluster.run->Status();
    EXPECT_THAT(status.waiting(), Contains(HasSubstr(absl::StrCat("epoch ", epoch + 1, " "))));
    ASSERT_EQ(ScriptedEvaluator::Step(evaluator.order.checkpoint()), (epoch + 1) * kEpochSteps);
    evaluator.Finish(losses[epoch]);
  }
  EXPECT_TRUE(worker.job_done);
  EXPECT_EQ(cluster.run->Status().ended_after_epoch(), 3u);
  EXPECT_EQ(TestLosses(cluster), losses);
}

TEST(TrainingEvaluatorTest, TheCheckpointThatTrainingAwaitsGoesFirst) {
  ScriptedCluster::Options options = WithEarlyStopping();
  options.checkpoint = R"({"every_steps": 5, "keep": 9})";
  ScriptedCluster cluster(options);
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  FinishEpoch(&cluster, worker);
  evaluator.Take();
  EXPECT_THAT(evaluator.orders, ElementsAre(5, kEpochSteps));
  evaluator.Finish(1);
  EXPECT_THAT(worker.leases, Not(IsEmpty()));
  evaluator.Finish(2);
  EXPECT_THAT(EvaluatedSteps(cluster), ElementsAre(kEpochSteps, 5)) << "it came again";
}

TEST(TrainingEvaluatorTest, OneThatIsKilledIsReplacedAndNothingCountsTwice) {
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

TEST(TrainingEvaluatorTest, WorkersTakeOverFromOneThatDoesNotComeBack) {
  ScriptedCluster cluster(WithEarlyStopping());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  FinishEpoch(&cluster, worker);
  evaluator.Die();
  cluster.Advance(seconds(11));
  ASSERT_THAT(worker.evaluations, Not(IsEmpty()));
  while (!worker.evaluations.empty()) {
    worker.Evaluate();
    cluster.Settle();
  }
  EXPECT_THAT(worker.leases, Not(IsEmpty()));
}

TEST(TrainingEvaluatorTest, OneThatLeavesIsNotWaitedFor) {
  ScriptedCluster cluster(WithEarlyStopping());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  FinishEpoch(&cluster, worker);
  evaluator.Leave();
  EXPECT_THAT(worker.evaluations, Not(IsEmpty()));
  EXPECT_EQ(StatusOfEvaluator(cluster).state(), "left");
}

// A checkpoint at which every evaluator dies would else hold the training up for ever.
TEST(TrainingEvaluatorTest, ACheckpointThatCrashesEvaluatorsGoesToWorkers) {
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

TEST(TrainingEvaluatorTest, OneThatGetsNoFurtherIsLetGo) {
  ScriptedCluster cluster(WithEarlyStopping());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  FinishEpoch(&cluster, worker);
  evaluator.Take();
  for (uint64_t batch = 1; batch < 4; ++batch) {
    cluster.Advance(seconds(50));
    evaluator.SendProgress(batch);
  }
  EXPECT_THAT(evaluator.rejected, IsEmpty());
  cluster.Advance(seconds(61));
  evaluator.Take();
  EXPECT_THAT(evaluator.rejected, AllOf(HasSubstr("3 of 4 "), HasSubstr(" 60 s")));
  EXPECT_FALSE(evaluator.final);
}

TEST(TrainingEvaluatorTest, EvaluatedAndBestCheckpointsStayOnDisk) {
  ScriptedCluster::Options options = WithTestSet();
  options.checkpoint = R"({"every_steps": 2, "keep": 2})";
  options.epochs = 20;
  ScriptedCluster cluster(options);
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  while (evaluator.orders.empty()) {
    cluster.FinishStep(worker);
    evaluator.Take();
  }
  const uint64_t first = evaluator.orders[0];
  for (int i = 0; i < 20; ++i) cluster.FinishStep(worker);
  EXPECT_THAT(cluster.StoredSteps(), Contains(first));
  EXPECT_THAT(cluster.StoredSteps(), SizeIs(3));
  evaluator.Finish(1);
  evaluator.Take();
  ASSERT_THAT(evaluator.orders, SizeIs(2));
  EXPECT_GT(evaluator.orders[1], first + 10) << "the newest";
  evaluator.Finish(2);
  for (int i = 0; i < 20; ++i) cluster.FinishStep(worker);
  EXPECT_THAT(cluster.StoredSteps(), Contains(first)) << "it is the best";
  EXPECT_THAT(cluster.StoredSteps(), Not(Contains(evaluator.orders[1])));
}

TEST(TrainingEvaluatorTest, ACheckpointThatIsDamagedIsPassedOver) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 7; ++i) cluster.FinishStep(worker);
  evaluator.Take();
  EXPECT_THAT(evaluator.Read(), SizeIs(16));
  // A bit of what is read flips.
  const std::string directory =
      cluster.run_dir() + "/checkpoints/" + evaluator.order.checkpoint() + "/";
  for (const std::string& name : NamesIn(directory)) {
    if (!name.ends_with(".safetensors")) continue;
    std::string file = FileContent(directory + name);
    file.back() = static_cast<char>(file.back() ^ 1);
    WriteAll(directory + name, file);
  }
  evaluator.Finish(1);
  EXPECT_THAT(Lines(cluster), IsEmpty());
  EXPECT_THAT(evaluator.orders, ElementsAre(5));
  FinishEpoch(&cluster, worker);
  evaluator.Take();
  EXPECT_THAT(evaluator.orders, SizeIs(2));
}

TEST(TrainingEvaluatorTest, AnUnreadableCheckpointIsSkipped) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 7; ++i) cluster.FinishStep(worker);
  evaluator.Take();
  ASSERT_THAT(evaluator.orders, ElementsAre(5));
  const std::string directory =
      cluster.run_dir() + "/checkpoints/" + evaluator.order.checkpoint() + "/";
  for (const std::string& name : NamesIn(directory)) std::filesystem::remove(directory + name);
  EXPECT_THAT(evaluator.Read(), IsEmpty());
  EXPECT_THAT(evaluator.Read(), IsEmpty()) << "it is not at hand any more";
  FinishEpoch(&cluster, worker);
  evaluator.Take();
  EXPECT_THAT(evaluator.orders, SizeIs(2));
}

TEST(TrainingEvaluatorTest, ASecondOneIsNotLetIn) {
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

TEST(TrainingEvaluatorTest, AnEvaluatorUnfitForTheJobIsToldSo) {
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
TEST(TrainingEvaluatorTest, NonsenseIsRejectedAndHarmsNobody) {
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

TEST(TrainingEvaluatorTest, AFailedRequestSaysNothingOfACheckpoint) {
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

TEST(TrainingEvaluatorTest, MoreBatchesThanTheTestSetHasAreNoHeadway) {
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
