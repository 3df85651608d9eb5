// A run with a ready evaluator: which checkpoints it gets, what its results decide, and how long
// the run waits for it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/run/evaluations.h"
#include "tests/common/base/file_content.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/common/metrics/sample_value.h"
#include "tests/coordinator/training/training_evaluator_fixture.h"

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

TEST_F(TrainingEvaluatorTest, EachCheckpointIsEvaluatedAndWorkersEvaluateNothing) {
  Begin(WithTestSet());
  EXPECT_TRUE(evaluator_->welcomed);
  EXPECT_THAT(evaluator_->orders, IsEmpty()) << "there is no checkpoint";
  EXPECT_EQ(StatusOfEvaluator(*cluster_).state(), "up");
  double loss = 3;
  while (!worker_->job_done || evaluator_->order.evaluation() != 0) {
    if (!worker_->leases.empty()) cluster_->FinishStep(*worker_);
    evaluator_->Take();
    if (evaluator_->order.evaluation() == 0) continue;
    EXPECT_THAT(evaluator_->Read(), SizeIs(16));
    evaluator_->SendProgress(3);
    EXPECT_THAT(StatusOfEvaluator(*cluster_).detail(), HasSubstr("3 of 4 "));
    evaluator_->Finish(loss -= 0.25);
  }
  cluster_->Disconnect(*worker_);
  evaluator_->Take();
  EXPECT_THAT(worker_->evaluations, IsEmpty());
  EXPECT_EQ(SampleValue(*cluster_->run, "shoal_evaluation_batches_total"), 0);
  EXPECT_THAT(evaluator_->orders, Contains(kEpochSteps));
  EXPECT_THAT(evaluator_->orders, Contains(2 * kEpochSteps));
  EXPECT_THAT(evaluator_->orders, SizeIs(Gt(3u)));
  EXPECT_TRUE(evaluator_->job_done);
  evaluator_->Die();
  ASSERT_TRUE(cluster_->over.has_value());
  EXPECT_TRUE(cluster_->over->ok()) << *cluster_->over;

  // What it found is in both files, under the checkpoint that it is of.
  EXPECT_EQ(EvaluatedSteps(*cluster_), evaluator_->orders);
  for (const CheckpointResult& line : Lines(*cluster_)) {
    EXPECT_EQ(line.examples, kTestExamples);
    EXPECT_THAT(line.metrics, SizeIs(1));
    EXPECT_EQ(line.metrics[0].second, 0.25);
    if (line.step % kEpochSteps != 0) continue;
    EXPECT_EQ(TestLosses(*cluster_).at(line.epoch), line.loss);
  }
  const proto::StatusReply status = cluster_->run->Status();
  ASSERT_EQ(status.best_size(), 1);
  EXPECT_EQ(status.best(0).figure(), "val_loss");
  EXPECT_EQ(status.best(0).value(), loss);
  EXPECT_EQ(ScriptedEvaluator::Step(std::filesystem::path(status.best(0).directory()).filename()),
            evaluator_->orders.back());
}

TEST_F(TrainingEvaluatorTest, TrainingDoesNotWaitWhereNothingIsDecided) {
  Begin(WithTestSet());
  FinishEpoch(&*cluster_, *worker_);
  FinishEpoch(&*cluster_, *worker_);
  EXPECT_TRUE(worker_->job_done) << "though nothing has been evaluated";
  evaluator_->Take();
  EXPECT_THAT(evaluator_->orders, Not(IsEmpty()));
}

TEST_F(TrainingEvaluatorTest, WhereTheResultDecidesTrainingWaitsForIt) {
  Begin(WithEarlyStopping());
  const std::vector<double> losses = {3, 2, 2.5, 2.6};
  for (size_t epoch = 0; epoch < losses.size(); ++epoch) {
    FinishEpoch(&*cluster_, *worker_);
    evaluator_->Take();
    EXPECT_THAT(worker_->leases, IsEmpty());
    EXPECT_THAT(worker_->evaluations, IsEmpty());
    cluster_->Advance(seconds(30));
    EXPECT_THAT(worker_->leases, IsEmpty());
    const proto::StatusReply status = cluster_->run->Status();
    EXPECT_THAT(status.waiting(), Contains(HasSubstr(absl::StrCat("epoch ", epoch + 1, " "))));
    ASSERT_EQ(ScriptedEvaluator::Step(evaluator_->order.checkpoint()), (epoch + 1) * kEpochSteps);
    evaluator_->Finish(losses[epoch]);
  }
  EXPECT_TRUE(worker_->job_done);
  EXPECT_EQ(cluster_->run->Status().ended_after_epoch(), 3u);
  EXPECT_EQ(TestLosses(*cluster_), losses);
}

TEST_F(TrainingEvaluatorTest, TheCheckpointThatTrainingAwaitsGoesFirst) {
  ScriptedCluster::Options options = WithEarlyStopping();
  options.checkpoint = R"({"every_steps": 5, "keep": 9})";
  Begin(options);
  FinishEpoch(&*cluster_, *worker_);
  evaluator_->Take();
  EXPECT_THAT(evaluator_->orders, ElementsAre(5, kEpochSteps));
  evaluator_->Finish(1);
  EXPECT_THAT(worker_->leases, Not(IsEmpty()));
  evaluator_->Finish(2);
  EXPECT_THAT(EvaluatedSteps(*cluster_), ElementsAre(kEpochSteps, 5)) << "it came again";
}

TEST_F(TrainingEvaluatorTest, WorkersTakeOverFromOneThatDoesNotComeBack) {
  Begin(WithEarlyStopping());
  FinishEpoch(&*cluster_, *worker_);
  evaluator_->Die();
  cluster_->Advance(seconds(11));
  ASSERT_THAT(worker_->evaluations, Not(IsEmpty()));
  while (!worker_->evaluations.empty()) {
    worker_->Evaluate();
    cluster_->Settle();
  }
  EXPECT_THAT(worker_->leases, Not(IsEmpty()));
}

TEST_F(TrainingEvaluatorTest, OneThatLeavesIsNotWaitedFor) {
  Begin(WithEarlyStopping());
  FinishEpoch(&*cluster_, *worker_);
  evaluator_->Leave();
  EXPECT_THAT(worker_->evaluations, Not(IsEmpty()));
  EXPECT_EQ(StatusOfEvaluator(*cluster_).state(), "left");
}

TEST_F(TrainingEvaluatorTest, OneThatGetsNoFurtherIsLetGo) {
  Begin(WithEarlyStopping());
  FinishEpoch(&*cluster_, *worker_);
  evaluator_->Take();
  for (uint64_t batch = 1; batch < 4; ++batch) {
    cluster_->Advance(seconds(50));
    evaluator_->SendProgress(batch);
  }
  EXPECT_THAT(evaluator_->rejected, IsEmpty());
  cluster_->Advance(seconds(61));
  evaluator_->Take();
  EXPECT_THAT(evaluator_->rejected, AllOf(HasSubstr("3 of 4 "), HasSubstr(" 60 s")));
  EXPECT_FALSE(evaluator_->final);
}

TEST_F(TrainingEvaluatorTest, EvaluatedAndBestCheckpointsStayOnDisk) {
  ScriptedCluster::Options options = WithTestSet();
  options.checkpoint = R"({"every_steps": 2, "keep": 2})";
  options.epochs = 20;
  Begin(options);
  while (evaluator_->orders.empty()) {
    cluster_->FinishStep(*worker_);
    evaluator_->Take();
  }
  const uint64_t first = evaluator_->orders[0];
  for (int i = 0; i < 20; ++i) cluster_->FinishStep(*worker_);
  EXPECT_THAT(cluster_->StoredSteps(), Contains(first));
  EXPECT_THAT(cluster_->StoredSteps(), SizeIs(3));
  evaluator_->Finish(1);
  evaluator_->Take();
  ASSERT_THAT(evaluator_->orders, SizeIs(2));
  EXPECT_GT(evaluator_->orders[1], first + 10) << "the newest";
  evaluator_->Finish(2);
  for (int i = 0; i < 20; ++i) cluster_->FinishStep(*worker_);
  EXPECT_THAT(cluster_->StoredSteps(), Contains(first)) << "it is the best";
  EXPECT_THAT(cluster_->StoredSteps(), Not(Contains(evaluator_->orders[1])));
}

TEST_F(TrainingEvaluatorTest, ACheckpointThatIsDamagedIsPassedOver) {
  Begin(WithTestSet());
  for (int i = 0; i < 7; ++i) cluster_->FinishStep(*worker_);
  evaluator_->Take();
  EXPECT_THAT(evaluator_->Read(), SizeIs(16));
  // A bit of what is read flips.
  const std::string directory =
      cluster_->run_dir() + "/checkpoints/" + evaluator_->order.checkpoint() + "/";
  for (const std::string& name : NamesIn(directory)) {
    if (!name.ends_with(".safetensors")) continue;
    std::string file = FileContent(directory + name);
    file.back() = static_cast<char>(file.back() ^ 1);
    WriteAll(directory + name, file);
  }
  evaluator_->Finish(1);
  EXPECT_THAT(Lines(*cluster_), IsEmpty());
  EXPECT_THAT(evaluator_->orders, ElementsAre(5));
  FinishEpoch(&*cluster_, *worker_);
  evaluator_->Take();
  EXPECT_THAT(evaluator_->orders, SizeIs(2));
}

TEST_F(TrainingEvaluatorTest, AnUnreadableCheckpointIsSkipped) {
  Begin(WithTestSet());
  for (int i = 0; i < 7; ++i) cluster_->FinishStep(*worker_);
  evaluator_->Take();
  ASSERT_THAT(evaluator_->orders, ElementsAre(5));
  const std::string directory =
      cluster_->run_dir() + "/checkpoints/" + evaluator_->order.checkpoint() + "/";
  for (const std::string& name : NamesIn(directory)) std::filesystem::remove(directory + name);
  EXPECT_THAT(evaluator_->Read(), IsEmpty());
  EXPECT_THAT(evaluator_->Read(), IsEmpty()) << "it is not at hand any more";
  FinishEpoch(&*cluster_, *worker_);
  evaluator_->Take();
  EXPECT_THAT(evaluator_->orders, SizeIs(2));
}

}  // namespace
}  // namespace shoal
