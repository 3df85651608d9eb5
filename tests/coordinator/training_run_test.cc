#include "coordinator/training_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/model_export.h"
#include "common/files/durable_file.h"
#include "common/log/logging.h"
#include "tests/common/base/file_content.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/common/metrics/sample_value.h"
#include "tests/coordinator/scripted_cluster.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Lt;
using testing::Not;
using testing::SizeIs;

constexpr uint64_t kSteps = 2 * kEpochSteps;

// --- Begin ---------------------------------------------------------------------------------------

TEST(TrainingRunTest, LeasesFromTheFirstReadyWorkerOn) {
  ScriptedCluster cluster({.ps = 2});
  EXPECT_THAT(cluster.ps[1]->loads, SizeIs(1)) << "the variables are loaded before anybody works";
  proto::StatusReply status = cluster.run->Status();
  EXPECT_EQ(status.phase(), "training");
  EXPECT_EQ(status.total_steps(), 0u);
  EXPECT_THAT(status.waiting(), ElementsAre(HasSubstr("shoal-worker --chief=chief:1")));
  ScriptedWorker& worker = cluster.Join(0);
  EXPECT_THAT(worker.timelines, ElementsAre(cluster.ps[0]->timeline));
  EXPECT_THAT(worker.leases, ElementsAre(0, 1));
  status = cluster.run->Status();
  EXPECT_EQ(status.total_steps(), kSteps);
  EXPECT_EQ(status.steps_per_epoch(), kEpochSteps);
  EXPECT_EQ(status.epochs(), 2u);
  EXPECT_THAT(status.waiting(), IsEmpty());
  cluster.FinishStep(worker);
  EXPECT_THAT(worker.leases, ElementsAre(1, 2));
  EXPECT_EQ(cluster.run->Status().steps_done(), 1u);
}

TEST(TrainingRunTest, AWorkerOfAnotherJobGetsNoSteps) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Connect({});
  worker.job_fingerprint ^= 1;
  cluster.SendReady(worker, 200, 0);
  EXPECT_TRUE(worker.of_another_job);
  EXPECT_THAT(worker.leased, IsEmpty());
  EXPECT_EQ(cluster.WorkerStatus(0).state(), "lost");
  EXPECT_EQ(SampleValue(*cluster.run, "shoal_rejected_jobs_total", {"worker"}), 1);
  EXPECT_THAT(cluster.Join({.incarnation = 2}).leased, Not(IsEmpty())) << "it was started anew";
}

TEST(TrainingRunTest, AWorkerThatCutsTheModelOtherwiseIsRejected) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Connect({});
  worker.SendReady(200, 0, /*shard_map=*/1);
  cluster.Settle();
  EXPECT_THAT(worker.rejected, HasSubstr(" 00000001,"));
  EXPECT_EQ(cluster.run->Status().total_steps(), 0u) << "nor is it believed in anything else";
}

class OtherCountsTest : public testing::TestWithParam<std::pair<uint64_t, uint64_t>> {};

TEST_P(OtherCountsTest, AreRejectedNamingBoth) {
  ScriptedCluster cluster({.test_examples = 50});
  cluster.Join(0);
  const auto [training, test] = GetParam();
  ScriptedWorker& worker = cluster.Connect({.index = 1, .incarnation = 5});
  cluster.SendReady(worker, training, test);
  if (training == 0) {
    EXPECT_THAT(worker.rejected, HasSubstr(" no training "));
  } else {
    EXPECT_THAT(worker.rejected,
                AllOf(HasSubstr(absl::StrCat(" ", training, " training and ", test, " test")),
                      HasSubstr("worker 0 ("), HasSubstr(" 200 and 50"), HasSubstr("--run_dir")));
  }
  EXPECT_THAT(worker.leases, IsEmpty());
  EXPECT_EQ(cluster.WorkerStatus(1).state(), "lost");
}
INSTANTIATE_TEST_SUITE_P(TrainingRun, OtherCountsTest,
                         testing::Values(std::pair(199, 50), std::pair(200, 49), std::pair(200, 0),
                                         std::pair(0, 50)));

// Whoever comes first to a coordinator that goes on with a run need not be believed.
TEST(TrainingRunTest, ARunWithACheckpointKnowsItsExamples) {
  ScriptedCluster cluster({.test_examples = 50, .checkpoint = R"({"every_steps": 5})"});
  ScriptedWorker& first = cluster.Join(0);
  while (cluster.StoredSteps().empty()) cluster.FinishStep(first);
  for (const bool ps_lost : {true, false}) {
    if (ps_lost) cluster.ps[0]->Restart();
    cluster.StartCoordinator();
    for (const auto& [training, test] : {std::pair(100, 50), std::pair(200, 0)}) {
      ScriptedWorker& other = cluster.Connect({.index = 1, .incarnation = 5});
      cluster.SendReady(other, training, test);
      EXPECT_THAT(
          other.rejected,
          AllOf(HasSubstr(absl::StrCat(" ", training, " training and ", test, " test")),
                HasSubstr(cluster.run_dir() + "/checkpoints/step-"), HasSubstr(" 200 and 50")));
    }
    ScriptedWorker& honest = cluster.Join(0);
    EXPECT_EQ(honest.rejected, "");
    EXPECT_FALSE(honest.leases.empty());
    cluster.FinishStep(honest);
  }
}

// --- Cuts ----------------------------------------------------------------------------------------

TEST(TrainingRunTest, CutsEverySoManySteps) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 5, "keep": 100})"});
  cluster.FinishAll(cluster.Join(0));
  // Where the end is near, its cut is next.
  EXPECT_THAT(cluster.ps[0]->CutSteps(), ElementsAre(5, 10, 15, kSteps));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(kSteps, 15, 10, 5));
  for (const proto::Fence& fence : cluster.ps[0]->fences) EXPECT_FALSE(fence.hold());
}

TEST(TrainingRunTest, NoLeasePassesACutBeforeItIsAccepted) {
  ScriptedCluster cluster({.ps = 2, .checkpoint = R"({"every_steps": 5})"});
  cluster.ps[1]->accepts_fences = false;
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishAll(worker);
  EXPECT_THAT(worker.leased, ElementsAre(0, 1, 2, 3, 4));
  cluster.ps[1]->accepts_fences = true;
  cluster.Settle();
  EXPECT_THAT(worker.leases, ElementsAre(5, 6));
}

TEST(TrainingRunTest, LeasesGoOnWhileACutIsNotComplete) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 5})"});
  ScriptedWorker& slow = cluster.Join(0);
  cluster.FinishAll(cluster.Join(1));  // all but what the other one has
  EXPECT_THAT(slow.leases, ElementsAre(0, 1));
  EXPECT_EQ(cluster.run->Status().steps_done(), kSteps - 2);
  EXPECT_THAT(cluster.StoredSteps(), IsEmpty());
  EXPECT_THAT(cluster.ps[0]->CutSteps(), ElementsAre(5)) << "one at a time";
}

TEST(TrainingRunTest, CutsEverySoManySeconds) {
  ScriptedCluster cluster({.checkpoint = R"({"every_seconds": 10})"});
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 3; ++i) cluster.FinishStep(worker);
  cluster.Advance(milliseconds(9700));
  EXPECT_THAT(cluster.ps[0]->CutSteps(), IsEmpty());
  cluster.Advance(milliseconds(600));
  EXPECT_THAT(cluster.ps[0]->CutSteps(), ElementsAre(5)) << "the first step that nobody has";
  cluster.Advance(seconds(20));
  EXPECT_THAT(cluster.ps[0]->CutSteps(), ElementsAre(5)) << "one at a time";
  cluster.FinishStep(worker);
  cluster.FinishStep(worker);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(5));
}

TEST(TrainingRunTest, AnEpochsEndIsNotPassedBeforeItsCutIsAccepted) {
  ScriptedCluster cluster({.test_examples = 50});
  cluster.ps[0]->accepts_fences = false;
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishAll(worker);
  EXPECT_THAT(worker.leased, AllOf(SizeIs(kEpochSteps), Each(Lt(kEpochSteps))));
  EXPECT_THAT(cluster.ps[0]->CutSteps(), ElementsAre(kEpochSteps));
  EXPECT_TRUE(cluster.ps[0]->fences[0].hold()) << "for the evaluation";
  cluster.ps[0]->accepts_fences = true;
  cluster.Settle();
  EXPECT_THAT(worker.leases, ElementsAre(13, 14));
}

TEST(TrainingRunTest, WithoutATestSetEpochsAreNotCut) {
  ScriptedCluster cluster({});
  cluster.FinishAll(cluster.Join(0));
  EXPECT_THAT(cluster.ps[0]->CutSteps(), ElementsAre(kSteps));
  EXPECT_FALSE(cluster.ps[0]->fences[0].hold());
}

// A ps knows a cut by term and step, and would answer for the first try for ever.
TEST(TrainingRunTest, AFinalCutThatFailedIsTriedAgainUnderAFreshTerm) {
  ScriptedCluster cluster({});
  cluster.ps[0]->write_error = "cannot write: No space left on device";
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishAll(worker);
  EXPECT_THAT(cluster.run->Status().last_checkpoint().last_error(), HasSubstr("No space left"));
  EXPECT_FALSE(worker.job_done);
  cluster.ps[0]->write_error.clear();
  cluster.Advance(seconds(4));
  EXPECT_THAT(cluster.ps[0]->CutSteps(), SizeIs(1)) << "after a pause";
  cluster.Advance(seconds(2));
  EXPECT_THAT(cluster.ps[0]->CutSteps(), ElementsAre(kSteps, kSteps));
  EXPECT_GT(cluster.ps[0]->fence_terms[1], cluster.ps[0]->fence_terms[0]);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(kSteps));
  EXPECT_TRUE(worker.job_done);
}

TEST(TrainingRunTest, AfterASupersededFenceCutsHaveAFreshTerm) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 5, "keep": 100})"});
  cluster.ps[0]->superseded = true;
  ScriptedWorker& worker = cluster.Join(0);
  for (int step = 0; step < 6; ++step) cluster.FinishStep(worker);
  cluster.Advance(seconds(6));  // a cut that failed is tried again after a pause
  cluster.FinishAll(worker);
  EXPECT_EQ(cluster.ps[0]->fences_rejected, 1u);
  EXPECT_THAT(cluster.ps[0]->fence_terms, AllOf(Not(IsEmpty()), Each(Gt(cluster.ps[0]->timeline))));
  EXPECT_THAT(cluster.StoredSteps(), Contains(Lt(kSteps)));
}

// Without them it rejects the first pushes.
TEST(TrainingRunTest, APsKnowsTheExamplesBeforeAStepIsLeased) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  ASSERT_THAT(worker.leased, Not(IsEmpty()));
  EXPECT_EQ(cluster.ps[0]->training_examples, ScriptedCluster::kExamples);
}

TEST(TrainingRunTest, ALostStreamGetsTheFenceAgain) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 5, "keep": 100})"});
  cluster.ps[0]->accepts_fences = false;
  ScriptedWorker& worker = cluster.Join(0);
  cluster.network.Newest("ps-0:1").Close(absl::UnavailableError("reset"));
  cluster.ps[0]->accepts_fences = true;
  cluster.Advance(seconds(1));
  cluster.FinishAll(worker);
  EXPECT_THAT(cluster.StoredSteps(), Contains(5));
}

TEST(TrainingRunTest, OnlyThePsThatWasLostGetsTheFenceAgain) {
  ScriptedCluster cluster({.ps = 2, .checkpoint = R"({"every_steps": 5, "keep": 100})"});
  for (auto& ps : cluster.ps) ps->accepts_fences = false;
  cluster.Join(0);
  ASSERT_EQ(cluster.ps[0]->fences_heard, 1u);
  ASSERT_EQ(cluster.ps[1]->fences_heard, 1u);
  cluster.network.Newest("ps-0:1").Close(absl::UnavailableError("reset"));
  cluster.Advance(seconds(1));
  EXPECT_EQ(cluster.ps[0]->fences_heard, 2u);
  EXPECT_EQ(cluster.ps[1]->fences_heard, 1u);
}

// --- Evaluation ----------------------------------------------------------------------------------

TEST(TrainingRunTest, AnEpochIsEvaluatedWhileTrainingGoesOn) {
  ScriptedCluster cluster({.test_examples = 50});
  ScriptedWorker& worker = cluster.Join(0);
  while (worker.evaluations.empty()) cluster.FinishStep(worker);
  EXPECT_EQ(worker.evaluations[0].cut_step(), kEpochSteps);
  EXPECT_THAT(worker.evaluations, SizeIs(2)) << "a little ahead";
  EXPECT_THAT(worker.leases, Not(IsEmpty()));
  EXPECT_EQ(cluster.run->Status().evaluation_batches(), 4u);  // 50 examples by 16
  EXPECT_FALSE(cluster.run->Status().history(0).has_test_loss());
  std::set<uint64_t> batches;
  while (!worker.evaluations.empty()) {
    batches.insert(worker.evaluations.front().batch());
    worker.Evaluate();
    cluster.Settle();
  }
  EXPECT_THAT(batches, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(cluster.ps[0]->released, ElementsAre(kEpochSteps));
  const proto::StatusReply status = cluster.run->Status();
  ASSERT_EQ(status.history_size(), 1);
  EXPECT_DOUBLE_EQ(status.history(0).test_loss(), 3);
  EXPECT_DOUBLE_EQ(status.history(0).test_metrics(0).value(), 0.25);
  EXPECT_EQ(status.evaluation_batches(), 0u);
  EXPECT_THAT(FileContent(cluster.run_dir() + "/history.csv"), HasSubstr("\n1,1,0.5,3,0.25,"));
}

TEST(TrainingRunTest, ALostWorkersBatchesAreEvaluatedByOthers) {
  ScriptedCluster cluster({.test_examples = 50});
  ScriptedWorker& lost = cluster.Join(0);
  while (lost.evaluations.empty()) cluster.FinishStep(lost);
  ScriptedWorker& other = cluster.Join(1);
  EXPECT_EQ(other.evaluations.front().batch(), 2u);
  cluster.Disconnect(lost);
  while (!other.evaluations.empty()) {
    other.Evaluate();
    cluster.Settle();
  }
  EXPECT_TRUE(cluster.run->Status().history(0).has_test_loss());
}

// After a takeover a worker may have been further than the new coordinator knows.
TEST(TrainingRunTest, ARejectedCutOfAnEpochGoesAboveTheAppliedSteps) {
  ScriptedCluster cluster({.test_examples = 50});
  cluster.Join(0);
  for (uint64_t step = 0; step < 15; ++step) cluster.ps[0]->applied.insert(step);
  cluster.ps[0]->applied.erase(12);
  cluster.StartCoordinator();
  ScriptedWorker& worker = cluster.Join(0);
  EXPECT_THAT(cluster.ps[0]->CutSteps(), ElementsAre(15));
  EXPECT_TRUE(cluster.ps[0]->fences.back().hold());
  EXPECT_EQ(worker.leases.front(), 12u);
  cluster.FinishStep(worker);
  ASSERT_THAT(worker.evaluations, Not(IsEmpty()));
  EXPECT_EQ(worker.evaluations.front().cut_step(), 15u);
}

TEST(TrainingRunTest, TheLastEpochKeepsItsLossWhileItIsEvaluated) {
  ScriptedCluster cluster({.test_examples = 50, .epochs = 1});
  ScriptedWorker& worker = cluster.Join(0);
  while (worker.evaluations.empty() || !worker.leases.empty()) cluster.FinishStep(worker);
  const proto::StatusReply status = cluster.run->Status();
  EXPECT_EQ(status.steps_done(), status.total_steps());
  EXPECT_DOUBLE_EQ(status.loss(), 1);
  ASSERT_EQ(status.metrics_size(), 1);
  EXPECT_DOUBLE_EQ(status.metrics(0).value(), 0.5);
}

// --- Timelines -----------------------------------------------------------------------------------

TEST(TrainingRunTest, ALostPsCostsTheStepsSinceTheCheckpoint) {
  ScriptedCluster cluster({.ps = 2, .checkpoint = R"({"every_steps": 5})"});
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 14; ++i) cluster.FinishStep(worker);
  EXPECT_THAT(cluster.StoredSteps(), Contains(10));
  EXPECT_EQ(cluster.run->Status().history_size(), 1);
  const uint64_t former = worker.timeline;
  cluster.ps[1]->Restart();
  cluster.Advance(seconds(2));
  EXPECT_GT(worker.timeline, former);
  EXPECT_EQ(cluster.ps[0]->timeline, worker.timeline);
  EXPECT_THAT(cluster.ps[0]->loads.back().checkpoint(), HasSubstr("step-000000000010"));
  EXPECT_THAT(worker.leases, ElementsAre(10, 11));
  EXPECT_EQ(cluster.run->Status().base_step(), 10u);
  EXPECT_EQ(cluster.run->Status().history_size(), 0) << "the end of the epoch did not happen";
  cluster.FinishAll(worker);
  EXPECT_TRUE(worker.job_done);
  EXPECT_EQ(cluster.run->Status().history_size(), 2);
}

TEST(TrainingRunTest, SaysFromWhereItGoesOnWithoutAPs) {
  const auto captured = [] {
    FlushLog(std::chrono::minutes(1));
    return testing::internal::GetCapturedStderr();
  };
  testing::internal::CaptureStderr();
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 5})"});
  EXPECT_THAT(captured(), Not(HasSubstr("workers repeat")));
  ScriptedWorker& worker = cluster.Join(0);
  const auto lose_ps = [&] {
    testing::internal::CaptureStderr();
    cluster.ps[0]->Restart();
    cluster.Advance(seconds(2));
    return captured();
  };
  EXPECT_THAT(lose_ps(), AllOf(HasSubstr("step 0"), HasSubstr("workers repeat")));
  for (int i = 0; i < 7; ++i) cluster.FinishStep(worker);
  ASSERT_THAT(cluster.StoredSteps(), ElementsAre(5));
  EXPECT_THAT(lose_ps(), AllOf(HasSubstr("at step 5"), HasSubstr("workers repeat")));
}

TEST(TrainingRunTest, AModelWithoutACheckpointIsNotReplaced) {
  const TemporaryDirectory directory;
  const std::string model = directory.path() + "/run/model";
  ASSERT_TRUE(MakeDirectories(model).ok());
  ASSERT_TRUE(ReplaceFile(model + "/" + kExportedVariablesName, "trained").ok());
  ScriptedCluster cluster({.directory = directory.path()});
  EXPECT_FALSE(cluster.over.has_value()) << "its workers may be starting";
  EXPECT_NE(cluster.Connect({.index = 0}).job_failure, "");
  cluster.Advance(seconds(6));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_EQ(cluster.over->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(cluster.over->message()),
              AllOf(HasSubstr("\n  " + model), HasSubstr("--run_dir")));
}

TEST(TrainingRunTest, ASuccessorAdoptsWhatIsThere) {
  ScriptedCluster cluster({.ps = 2});
  ScriptedWorker& before = cluster.Join(0);
  for (int i = 0; i < 3; ++i) cluster.FinishStep(before);
  const uint64_t timeline = before.timeline;
  cluster.StartCoordinator();
  EXPECT_THAT(cluster.ps[0]->loads, SizeIs(1)) << "no rollback";
  ScriptedWorker& holder =
      cluster.Join({.index = 0, .incarnation = 1, .timeline = timeline, .held_steps = {3, 4}});
  ScriptedWorker& stranger =
      cluster.Join({.index = 1, .incarnation = 2, .timeline = timeline - 1, .held_steps = {5}});
  EXPECT_EQ(holder.timeline, timeline);
  EXPECT_THAT(holder.leased, IsEmpty()) << "it has enough";
  EXPECT_THAT(stranger.leases, ElementsAre(5, 6));
  for (auto& ps : cluster.ps) ps->applied.insert(3);
  holder.Report(3);
  cluster.Settle();
  EXPECT_EQ(cluster.run->Status().steps_done(), 4u);
}

TEST(TrainingRunTest, ASuccessorKeepsTheHistory) {
  ScriptedCluster cluster({});
  ScriptedWorker& before = cluster.Join(0);
  for (int i = 0; i < 14; ++i) cluster.FinishStep(before);
  cluster.StartCoordinator();
  cluster.Join(0);
  ASSERT_EQ(cluster.run->Status().history_size(), 1);
  EXPECT_DOUBLE_EQ(cluster.run->Status().history(0).metrics(0).value(), 0.5);
}

// --- Streams -------------------------------------------------------------------------------------

TEST(TrainingRunTest, AnswersAStatusRequest) {
  ScriptedCluster cluster({});
  auto asker = std::make_shared<FarEnd>(&cluster.loop, "asker", kStatusMethod);
  asker->set_callbacks(*cluster.run->Accept(kStatusMethod, asker->MakeStream()));
  asker->Send(proto::StatusRequest());
  cluster.Settle();
  const auto replies = asker->Take<proto::StatusReply>();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].job_name(), "small");
  EXPECT_TRUE(asker->finished().has_value() && asker->finished()->ok());
  asker->Send(proto::StatusRequest());  // once more, as nobody should
  asker->Close(absl::OkStatus());
  cluster.Settle();
  EXPECT_TRUE(asker->gone());
}

TEST(TrainingRunTest, RejectsWhatIsNoRequest) {
  ScriptedCluster cluster({});
  auto asker = std::make_shared<FarEnd>(&cluster.loop, "asker", kStatusMethod);
  asker->set_callbacks(*cluster.run->Accept(kStatusMethod, asker->MakeStream()));
  asker->SendGarbage();
  cluster.Settle();
  ASSERT_TRUE(asker->finished().has_value());
  EXPECT_TRUE(absl::IsInvalidArgument(*asker->finished()));
  auto lost = std::make_shared<FarEnd>(&cluster.loop, "lost", kExchangeMethod);
  EXPECT_TRUE(
      absl::IsUnimplemented(cluster.run->Accept(kExchangeMethod, lost->MakeStream()).status()));
}

}  // namespace
}  // namespace shoal
