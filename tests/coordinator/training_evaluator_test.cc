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
#include "common/job/job.h"
#include "common/run/evaluations.h"
#include "common/run/history.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/common/metrics/sample_value.h"
#include "tests/coordinator/scripted_cluster.h"

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

constexpr uint64_t kTestExamples = 50;

// An evaluator that does what the test tells it.
class ScriptedEvaluator {
 public:
  explicit ScriptedEvaluator(ScriptedCluster* cluster, uint64_t incarnation = 1)
      : cluster_(cluster),
        stream_(std::make_shared<FarEnd>(&cluster->loop, "evaluator-host", kEvaluateMethod)) {
    auto callbacks = cluster_->run->Accept(kEvaluateMethod, stream_->MakeStream());
    EXPECT_TRUE(callbacks.ok()) << callbacks.status();
    stream_->set_callbacks(*std::move(callbacks));
    proto::EvaluatorReport report;
    report.mutable_hello()->set_version(kVersion);
    report.mutable_hello()->set_host("far");
    report.mutable_hello()->set_pid(7);
    report.mutable_hello()->set_incarnation(incarnation);
    Send(report);
  }
  void GetReady(uint64_t test_examples = kTestExamples) {
    proto::EvaluatorReport report;
    report.mutable_ready()->set_test_examples(test_examples);
    report.mutable_ready()->set_job_fingerprint(job_fingerprint);
    Send(report);
  }
  // Asks for some values of the model, as far as they are there.
  std::string Read(const std::string& variable = "dense/kernel", uint32_t size = 16) {
    proto::EvaluatorReport report;
    report.mutable_values_wanted()->set_evaluation(order.evaluation());
    report.mutable_values_wanted()->set_variable(variable);
    report.mutable_values_wanted()->set_size_bytes(size);
    values.clear();
    Send(report);
    return values;
  }
  void SendProgress(uint64_t done) {
    proto::EvaluatorReport report;
    report.mutable_progress()->set_evaluation(order.evaluation());
    report.mutable_progress()->set_batches_done(done);
    report.mutable_progress()->set_batches(4);
    Send(report);
  }
  // Says that it is done, with `loss` and accuracy 0.25.
  void Finish(double loss, uint64_t examples = kTestExamples) {
    proto::EvaluatorReport report;
    proto::CheckpointEvaluated* evaluated = report.mutable_evaluated();
    evaluated->set_evaluation(order.evaluation());
    evaluated->set_examples(examples);
    evaluated->set_loss_sum(loss * static_cast<double>(examples));
    evaluated->add_metric_sums(0.25 * static_cast<double>(examples));
    order.Clear();
    Send(report);
  }
  void Leave() {
    proto::EvaluatorReport report;
    report.mutable_leaving()->set_reason("told to");
    Send(report);
  }
  // As after kill -9.
  void Die() {
    stream_->Close(absl::UnavailableError("connection reset"));
    cluster_->Settle();
    Take();
  }
  void Send(const proto::EvaluatorReport& report) {
    stream_->Send(report);
    Take();
  }
  void Take() {
    cluster_->Settle();
    for (const proto::EvaluatorOrder& each : stream_->Take<proto::EvaluatorOrder>()) {
      welcomed = welcomed || each.has_welcome();
      if (each.has_welcome()) job_fingerprint = JobFingerprint(each.welcome().job());
      if (each.has_evaluate()) {
        order = each.evaluate();
        orders.push_back(Step(order.checkpoint()));
      }
      if (each.has_values()) values = each.values().values();
      if (each.has_rejected()) {
        rejected = each.rejected().reason();
        final = each.rejected().final();
        of_another_job = each.rejected().other_job();
      }
      job_done = job_done || each.has_job_done();
    }
  }
  // "step-000000000013-…".
  static uint64_t Step(const std::string& checkpoint) {
    return std::stoull(checkpoint.substr(sizeof("step-") - 1));
  }

  bool welcomed = false;
  bool job_done = false;
  proto::EvaluateCheckpoint order;  // at hand
  std::vector<uint64_t> orders;     // the steps of all checkpoints that it was given
  std::string values;
  std::string rejected;
  bool final = false;
  bool of_another_job = false;
  uint32_t job_fingerprint = 0;  // of the job of the Welcome; what GetReady says

 private:
  ScriptedCluster* const cluster_;
  const std::shared_ptr<FarEnd> stream_;
};

ScriptedCluster::Options WithTestSet() {
  return {.test_examples = kTestExamples, .checkpoint = R"({"every_steps": 5, "keep": 9})"};
}
ScriptedCluster::Options WithCallbacks() {
  return {.test_examples = kTestExamples,
          .callbacks = R"([{"class_name": "EarlyStopping", "config": {"patience": 2}}])",
          .checkpoint = R"({"keep": 2})",
          .epochs = 6};
}

proto::TaskStatus StatusOfEvaluator(const ScriptedCluster& cluster) {
  const proto::StatusReply status = cluster.run->Status();
  for (const proto::TaskStatus& task : status.tasks())
    if (task.type() == "evaluator") return task;
  return {};
}

std::vector<CheckpointResult> Lines(const ScriptedCluster& cluster) {
  const Evaluations read = ReadEvaluations(cluster.run_dir() + "/evaluations.csv");
  EXPECT_THAT(read.problem, IsEmpty());
  return read.results;
}

std::vector<uint64_t> EvaluatedSteps(const ScriptedCluster& cluster) {
  std::vector<uint64_t> steps;
  for (const CheckpointResult& each : Lines(cluster)) steps.push_back(each.step);
  return steps;
}

// By epoch; 0 where there is none.
std::vector<double> TestLosses(const ScriptedCluster& cluster) {
  std::vector<double> losses;
  const History history = ReadHistory(cluster.run_dir() + "/history.csv");
  EXPECT_THAT(history.problem, IsEmpty());
  for (const proto::EpochResult& epoch : history.epochs) losses.push_back(epoch.test_loss());
  return losses;
}

// The steps of one epoch.
void FinishEpoch(ScriptedCluster* cluster, ScriptedWorker& worker) {
  for (uint64_t i = 0; i < kEpochSteps && !worker.leases.empty(); ++i) cluster->FinishStep(worker);
}

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
  ScriptedCluster cluster(WithCallbacks());
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
  ScriptedCluster cluster(WithCallbacks());
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

TEST(TrainingEvaluatorTest, WhatTrainingWaitsForGoesBeforeAllElse) {
  ScriptedCluster::Options options = WithCallbacks();
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
  ScriptedCluster cluster(WithCallbacks());
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
  ScriptedCluster cluster(WithCallbacks());
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
  ScriptedCluster cluster(WithCallbacks());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  FinishEpoch(&cluster, worker);
  evaluator.Leave();
  EXPECT_THAT(worker.evaluations, Not(IsEmpty()));
  EXPECT_EQ(StatusOfEvaluator(cluster).state(), "left");
}

// A checkpoint at which every evaluator dies would else hold the training up for ever.
TEST(TrainingEvaluatorTest, WhatBringsEvaluatorsDownGoesToTheWorkers) {
  ScriptedCluster cluster(WithCallbacks());
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
  ScriptedCluster cluster(WithCallbacks());
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

TEST(TrainingEvaluatorTest, WhatIsBeingEvaluatedStaysOnDiskAndSoDoesTheBest) {
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

TEST(TrainingEvaluatorTest, TheEndWaitsForTheLastEvaluationAndForNobodyElse) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishAll(worker);
  ASSERT_TRUE(worker.job_done);
  cluster.Disconnect(worker);
  EXPECT_TRUE(cluster.ps[0]->stopped);
  cluster.Advance(seconds(40));
  EXPECT_FALSE(cluster.over.has_value());
  EXPECT_THAT(cluster.run->Status().waiting(), ElementsAre(HasSubstr("last checkpoint")));
  EXPECT_EQ(cluster.run->Status().phase(), "finished");
  evaluator.Take();
  EXPECT_FALSE(evaluator.job_done);
  // Both epochs' ends, and nothing within one.
  while (evaluator.order.evaluation() != 0) evaluator.Finish(evaluator.orders.back());
  EXPECT_TRUE(evaluator.job_done);
  EXPECT_FALSE(cluster.over.has_value()) << "it has not gone";
  evaluator.Die();
  ASSERT_TRUE(cluster.over.has_value() && cluster.over->ok());
  EXPECT_THAT(TestLosses(cluster), ElementsAre(kEpochSteps, 2 * kEpochSteps));
}

TEST(TrainingEvaluatorTest, TheEndDoesNotWaitForOneThatIsGone) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishAll(worker);
  evaluator.Die();
  cluster.Disconnect(worker);
  EXPECT_FALSE(cluster.over.has_value()) << "it may come back";
  cluster.Advance(seconds(11));
  ASSERT_TRUE(cluster.over.has_value() && cluster.over->ok());
}

TEST(TrainingEvaluatorTest, ToldToStopTheEndWaitsNoLonger) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishAll(worker);
  cluster.Disconnect(worker);
  EXPECT_FALSE(cluster.over.has_value());
  cluster.run->Stop();
  cluster.Settle();
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(cluster.over->ok()) << "the job is done";
}

TEST(TrainingEvaluatorTest, ASuccessorHasTheLastCheckpointEvaluated) {
  ScriptedCluster cluster(WithTestSet());
  auto evaluator = std::make_unique<ScriptedEvaluator>(&cluster);
  evaluator->GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  FinishEpoch(&cluster, worker);
  evaluator->Take();
  while (ScriptedEvaluator::Step(evaluator->order.checkpoint()) != kEpochSteps)
    evaluator->Finish(9);
  evaluator->Finish(3);
  FinishEpoch(&cluster, worker);
  ASSERT_TRUE(worker.job_done);
  cluster.Disconnect(worker);
  // kill -9
  for (auto& ps : cluster.ps) ps->Restart();
  evaluator.reset();
  cluster.StartCoordinator();
  ScriptedEvaluator again(&cluster);
  again.GetReady();
  cluster.Advance(seconds(12));
  again.Take();
  ASSERT_EQ(again.orders, std::vector<uint64_t>{2 * kEpochSteps}) << "and no other";
  again.Finish(2);
  EXPECT_TRUE(again.job_done);
  again.Die();
  ASSERT_TRUE(cluster.over.has_value() && cluster.over->ok());
  EXPECT_THAT(TestLosses(cluster), ElementsAre(3, 2));
}

TEST(TrainingEvaluatorTest, ASuccessorGoesOnWithWhatIsNotEvaluated) {
  ScriptedCluster cluster(WithTestSet());
  auto evaluator = std::make_unique<ScriptedEvaluator>(&cluster);
  evaluator->GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 7; ++i) cluster.FinishStep(worker);
  evaluator->Take();
  ASSERT_THAT(evaluator->orders, ElementsAre(5));
  evaluator->Finish(3);
  evaluator.reset();
  cluster.StartCoordinator();
  ScriptedEvaluator again(&cluster);
  again.GetReady();
  ScriptedWorker& worker_again = cluster.Join({.index = 0, .incarnation = 2});
  again.Take();
  EXPECT_THAT(again.orders, IsEmpty()) << "that at step 5 is known";
  FinishEpoch(&cluster, worker_again);
  again.Take();
  EXPECT_THAT(again.orders, Not(IsEmpty()));
  EXPECT_THAT(again.orders, Not(Contains(5)));
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
    std::string file = ReadAll(directory + name);
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

TEST(TrainingEvaluatorTest, WhatCannotBeReadIsPassedOver) {
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

TEST(TrainingEvaluatorTest, WhoCannotEvaluateThisJobIsToldSo) {
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

TEST(TrainingEvaluatorTest, WhatCannotBeAskedOrReportedSaysNothingOfACheckpoint) {
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
