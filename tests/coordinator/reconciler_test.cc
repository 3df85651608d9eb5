#include "coordinator/reconciler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/term.h"
#include "coordinator/run_timeline.h"
#include "tests/coordinator/run_parts_fixture.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;
using testing::Not;
using Cause = Wakeup::Cause;
using Phase = Shutdown::Phase;

// The body of a turn: the state of the parts in, the action out. Only the test calls Turn.
class ReconcilerTest : public RunPartsTest {
 protected:
  // Begins to lease the steps of a new timeline. The history is read.
  void Begin(Job job) {
    ASSERT_NO_FATAL_FAILURE(Lead());
    const bool has_test_set = !job.test.empty();
    MakeParts(std::move(job));
    timeline_.emplace(&*parts_, &wakeup_);
    reconciler_.emplace(&*parts_, &wakeup_);
    timeline_->TakeCounts({kExamples, has_test_set ? kTestExamples : 0}, "the test has");
    parts_->worker_came = true;
    timeline_->OnOpened(opened_.back());
    TakeCauses();
  }
  Job WithTestSet() { return MakeJob({.checkpoint = "{}"}); }
  Job WithCallback() {
    return MakeJob({.epochs = 3,
                    .callbacks = R"([{"class_name": "EarlyStopping", "config": {}}])",
                    .checkpoint = "{}"});
  }
  Job WithCutsEvery(uint64_t steps) {
    Job job = MakeJob();
    job.checkpoint.every_steps = steps;
    return job;
  }
  void Turn() { reconciler_->Turn(Cause::kFacts); }
  // All steps below `end` are done and reported.
  void DoneBelow(uint64_t end) {
    for (uint64_t step = 0; step < end; ++step) {
      parts_->scheduler->steps().Done(StepDispatcher::kNobody, step, loop_.Now());
      parts_->progress.StepDone({.step = step,
                                 .epoch = parts_->plan->EpochOf(step),
                                 .examples = parts_->plan->Range(step).count,
                                 .loss_sum = 1,
                                 .metric_sums = {1}},
                                loop_.Now());
    }
  }
  // All steps of the first epochs are done, and the epochs have these test losses.
  void Evaluated(const std::vector<double>& test_losses) {
    DoneBelow(test_losses.size() * kEpochSteps);
    parts_->history->CloseUpTo(test_losses.size() * kEpochSteps);
    for (size_t epoch = 0; epoch < test_losses.size(); ++epoch)
      parts_->history->SetTestResult(epoch, test_losses[epoch], {1}, kTestExamples);
    TakeCauses();
  }
  // The newest checkpoint is that of an epoch's end, on disk.
  StoredCheckpoint StoreEndOf(uint64_t epoch) {
    const uint64_t step = (epoch + 1) * kEpochSteps;
    StoredCheckpoint stored = WriteSmallCheckpoint(&store_, fleet_->timeline(), step);
    stored.manifest.total_steps = parts_->plan->total_steps();
    stored.manifest.epoch = epoch;
    stored.manifest.epoch_position = kExamples;
    stored.manifest.training_examples = kExamples;
    parts_->checkpointer->SetLast(stored);
    return stored;
  }
  void BeginEvaluation() {
    parts_->scheduler->BeginEvaluation(
        std::make_unique<Evaluation>(0, kEpochSteps, 4, 1, seconds(60)));
  }
  void JoinEvaluator() {
    evaluator_ = std::make_shared<FarEnd>(&loop_, "10.0.0.8:4711", kEvaluateMethod);
    evaluator_->set_callbacks(parts_->evaluator->Accept(evaluator_->MakeStream()));
    proto::EvaluatorReport report;
    report.mutable_hello()->set_version(kVersion);
    report.mutable_hello()->set_incarnation(1);
    evaluator_->Send(report);
    report.mutable_ready()->set_test_examples(kTestExamples);
    evaluator_->Send(report);
    loop_.RunUntilIdle();
    ASSERT_TRUE(parts_->evaluator->peer().up());
  }
  void AcceptCut() {
    loop_.RunUntilIdle();
    proto::ControlReply reply;
    reply.mutable_fence_accepted()->set_term(fleet_->term());
    reply.mutable_fence_accepted()->set_cut_step(parts_->checkpointer->step());
    for (int i = 0; i < kPsCount; ++i) parts_->checkpointer->OnReply(i, reply);
  }
  // Returns the step of the cut in progress; none if there is none.
  std::optional<uint64_t> CutStep() const {
    if (parts_->checkpointer->idle()) return std::nullopt;
    return parts_->checkpointer->step();
  }

  std::optional<RunTimeline> timeline_;
  std::optional<Reconciler> reconciler_;
  std::shared_ptr<FarEnd> evaluator_;
};

// --- 1. A run that cannot go on ---

TEST_F(ReconcilerTest, AFailureOfAPartEndsTheRunInTheNextTurn) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  const Worker& worker = workers_.Join(0);
  parts_->Fail({.status = absl::UnavailableError("too few descriptors")});
  parts_->Fail({.status = absl::DataLossError("not finite"), .ends_ps = true});
  EXPECT_FALSE(parts_->working());
  EXPECT_FALSE(parts_->shutdown->over());
  parts_->scheduler->Offer(*workers_.Find(0));
  parts_->scheduler->ServeQueue();
  EXPECT_EQ(parts_->scheduler->steps().held(worker.key), 0u);
  Turn();
  EXPECT_TRUE(parts_->shutdown->over());
  loop_.RunUntilIdle();
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(absl::IsUnavailable(*over_)) << "the first failure counts: " << *over_;
  EXPECT_THAT(workers_.Leases(0), IsEmpty());
}

TEST_F(ReconcilerTest, BeingFencedOffCountsBeforeOtherFailures) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  parts_->Fail({.status = absl::DataLossError("not finite"), .ends_ps = true});
  parts_->Fail({.status = absl::AbortedError("fenced off")});
  Turn();
  loop_.RunUntilIdle();
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(absl::IsAborted(*over_)) << *over_;
}

TEST_F(ReconcilerTest, AFailureForGoodIsToldToTheWorkers) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  parts_->lock->Acquire({}, [](const absl::Status&) {});
  workers_.Join(0);
  parts_->Fail({.status = absl::FailedPreconditionError("no room")});
  Turn();
  bool told = false;
  for (const proto::WorkerOrder& order : workers_.Orders(0))
    told = told || order.job_done().failure() == "no room";
  EXPECT_TRUE(told);
  EXPECT_FALSE(parts_->shutdown->over()) << "the worker has not gone";
}

TEST_F(ReconcilerTest, AFailureThatEndsThePsDismissesTheWorkersFirst) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Join(0);
  parts_->Fail({.status = absl::DataLossError("not finite"), .ends_ps = true});
  Turn();
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kDismissingWorkers);
  EXPECT_EQ(parts_->shutdown->failure(), "not finite");
}

TEST_F(ReconcilerTest, AnAbandonedTimelineIsClaimedAgain) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  timeline_->Abandon("a report was false", AbandonedTimeline::Remedy::kClaimAgain);
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLeading) << "until the next turn";
  EXPECT_FALSE(parts_->scheduler->open());
  const uint64_t timeline = fleet_->timeline();
  Turn();
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  EXPECT_FALSE(parts_->abandoned.has_value());
  loop_.RunUntilIdle();
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i, {.timeline = timeline, .base = 3});
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLeading) << "it is adopted";
}

TEST_F(ReconcilerTest, APsThatLeavesAwaitsTheRemedyOfAnAbandonedTimeline) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(1);
  timeline_->Abandon("a report was false", AbandonedTimeline::Remedy::kClaimAgain);
  SendDeparting(1);
  parts_->drain->OnPsDeparting(1);
  Turn();
  EXPECT_FALSE(ToldToStop(1)) << "nobody knows which steps it holds";
}

TEST_F(ReconcilerTest, AnAbandonedTimelineIsRestored) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  timeline_->Abandon("it does not fit the job", AbandonedTimeline::Remedy::kRestore);
  const uint64_t timeline = fleet_->timeline();
  Turn();
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  loop_.RunUntilIdle();
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i, {.timeline = timeline, .base = 3});
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLoading) << "it is not adopted";
}

TEST_F(ReconcilerTest, ATimelineThatIsOverMeanwhileIsNotAbandonedTwice) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  timeline_->Abandon("it does not fit", AbandonedTimeline::Remedy::kRestore);
  fleet_->ClaimAgain("a ps was started again");
  const uint64_t term = fleet_->term();
  Turn();
  EXPECT_EQ(fleet_->term(), term);
  EXPECT_FALSE(parts_->abandoned.has_value());
}

// --- 2. Outcomes ---

TEST_F(ReconcilerTest, ATurnRecordsTheOutcomesOfTheParts) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  parts_->checkpointer->Begin({.timeline = fleet_->timeline(), .step = 5, .term = fleet_->term()});
  parts_->checkpointer->Cancel("it takes too long");
  EXPECT_FALSE(parts_->cuts->last().failed);
  Turn();
  EXPECT_TRUE(parts_->cuts->last().failed);
  EXPECT_THAT(parts_->checkpointer->TakeOutcomes(), IsEmpty());
}

TEST_F(ReconcilerTest, AJobThatAPredecessorFinishedIsSaved) {
  takes_end_ = false;
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  const StoredCheckpoint last = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);
  nobody_trains_ = true;
  loop_.Advance(seconds(1));
  Turn();
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kSaving);
  EXPECT_EQ(parts_->checkpointer->last()->directory, last.directory);
}

TEST_F(ReconcilerTest, ARequestedCheckpointIsCutInTheSameTurn) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(3);
  auto far = std::make_shared<FarEnd>(&loop_, "operator", kCheckpointMethod);
  far->set_callbacks(*parts_->requests->Accept(kCheckpointMethod, far->MakeStream()));
  far->Send(proto::CheckpointRequest());
  loop_.RunUntilIdle();
  EXPECT_FALSE(parts_->requests->checkpoint_wanted());
  Turn();
  EXPECT_TRUE(parts_->requests->checkpoint_wanted());
  EXPECT_EQ(CutStep(), 3u);
}

// --- 3. Epochs ---

TEST_F(ReconcilerTest, ATurnClosesTheEpochsWhoseStepsAreDone) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(kEpochSteps);
  reconciler_->Turn(Cause::kReports);
  EXPECT_EQ(parts_->history->closed_epochs(), 0u) << "no worker has reported";
  Turn();
  EXPECT_EQ(parts_->history->closed_epochs(), 1u);
}

TEST_F(ReconcilerTest, WithoutATimelineNothingIsPlanned) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCutsEvery(5)));
  workers_.Join(0);
  timeline_->OnOver("a ps was started again");
  Turn();
  EXPECT_EQ(CutStep(), std::nullopt);
  EXPECT_THAT(workers_.Leases(0), IsEmpty());
}

TEST_F(ReconcilerTest, AtTheEndOfTheRunNothingIsPlanned) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCutsEvery(5)));
  workers_.Join(0);
  parts_->shutdown->Fail("the values are not finite");
  Turn();
  EXPECT_EQ(CutStep(), std::nullopt);
  EXPECT_THAT(workers_.Leases(0), IsEmpty());
}

// --- 4. The end and the callbacks ---

TEST_F(ReconcilerTest, AFinishedJobIsSavedFromItsFinalCheckpoint) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(2 * kEpochSteps);
  StoreEndOf(1);
  Turn();
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kSaving);
}

TEST_F(ReconcilerTest, AFinalCheckpointThatIsNotFiniteFailsTheRun) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(2 * kEpochSteps);
  StoredCheckpoint last = StoreEndOf(1);
  last.manifest.not_finite = "dense/kernel";
  parts_->checkpointer->SetLast(last);
  Turn();
  EXPECT_FALSE(parts_->shutdown->working());
  EXPECT_FALSE(parts_->shutdown->failure().empty());
}

TEST_F(ReconcilerTest, TheLastEvaluationDelaysTheEnd) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithTestSet()));
  DoneBelow(2 * kEpochSteps);
  StoreEndOf(1);
  BeginEvaluation();
  Turn();
  EXPECT_TRUE(parts_->shutdown->working());
  EXPECT_EQ(CutStep(), std::nullopt);
  parts_->scheduler->EndEvaluation();
  Turn();
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kSaving);
}

TEST_F(ReconcilerTest, AnEpochWithItsResultAndCheckpointIsDecided) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCallback()));
  Evaluated({0.5});
  StoreEndOf(0);
  EXPECT_EQ(parts_->cuts->epoch(), 0u);
  Turn();
  EXPECT_THAT(TakeCauses(), Not(IsEmpty()));
  EXPECT_EQ(parts_->cuts->epoch(), 1u);
  EXPECT_TRUE(parts_->shutdown->working());
  Turn();
  EXPECT_EQ(parts_->scheduler->steps().limit(), 2 * kEpochSteps);
}

TEST_F(ReconcilerTest, TheCallbacksMayEndTheTraining) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCallback()));
  Evaluated({0.5, 0.9});
  parts_->cuts->EpochDecided();
  StoreEndOf(1);
  Turn();
  loop_.RunUntilIdle();
  EXPECT_FALSE(parts_->shutdown->working());
  EXPECT_EQ(parts_->shutdown->failure(), "");
}

TEST_F(ReconcilerTest, AnEpochIsNotDecidedBeforeItsLastReports) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCallback()));
  Evaluated({0.5});
  StoreEndOf(0);
  parts_->history->Begin(*parts_->plan, kEpochSteps - 1, nullptr);
  parts_->progress.SetTestResult(0, 0.5, {1});
  parts_->scheduler->steps().Undo({kEpochSteps - 1});
  Turn();
  loop_.RunUntilIdle();
  EXPECT_EQ(parts_->cuts->epoch(), 0u);
  EXPECT_EQ(CutStep(), std::nullopt);
}

TEST_F(ReconcilerTest, ADecisionWaitsForTheEvaluatorsResult) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCallback()));
  JoinEvaluator();
  DoneBelow(kEpochSteps);
  parts_->evaluator->Add(StoreEndOf(0));
  Turn();
  EXPECT_EQ(CutStep(), std::nullopt);
}

TEST_F(ReconcilerTest, WithoutTheEvaluatorTheStepIsCutAgainAndHeld) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCallback()));
  DoneBelow(kEpochSteps);
  StoreEndOf(0);
  Turn();
  EXPECT_EQ(CutStep(), kEpochSteps);
  EXPECT_TRUE(parts_->checkpointer->held());
}

// --- 5. Cuts ---

TEST_F(ReconcilerTest, ADueCutBegins) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCutsEvery(5)));
  Turn();
  EXPECT_EQ(CutStep(), 5u);
  EXPECT_FALSE(parts_->checkpointer->held());
  EXPECT_EQ(parts_->cuts->last().step, 5u);
  EXPECT_FALSE(parts_->drain_cut);
}

TEST_F(ReconcilerTest, NoCutBeginsBeforeTheHistoryIsRead) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCutsEvery(5)));
  loop_.set_hold_offloads(true);
  parts_->history->ReadEarlier();
  Turn();
  EXPECT_EQ(CutStep(), std::nullopt);
  loop_.set_hold_offloads(false);
  loop_.RunUntilIdle();
  Turn();
  EXPECT_EQ(CutStep(), 5u);
}

TEST_F(ReconcilerTest, WorkersEvaluateAHeldCut) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithTestSet()));
  DoneBelow(5);
  Turn();
  EXPECT_EQ(CutStep(), kEpochSteps);
  EXPECT_TRUE(parts_->checkpointer->held());
}

TEST_F(ReconcilerTest, TheEvaluatorNeedsNoHeldCut) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithTestSet()));
  JoinEvaluator();
  DoneBelow(5);
  Turn();
  EXPECT_EQ(CutStep(), kEpochSteps);
  EXPECT_FALSE(parts_->checkpointer->held());
}

TEST_F(ReconcilerTest, ACutAtAKnownStepGetsAFreshTerm) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(2 * kEpochSteps);
  parts_->cuts->Began(2 * kEpochSteps, loop_.Now());
  const uint64_t term = fleet_->term();
  Turn();
  EXPECT_EQ(CutStep(), 2 * kEpochSteps);
  EXPECT_GT(fleet_->term(), term);
}

TEST_F(ReconcilerTest, AStopCutsTheDoneSteps) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(3);
  parts_->drain->Stop();
  Turn();
  EXPECT_EQ(CutStep(), 3u);
  EXPECT_TRUE(parts_->drain_cut);
  EXPECT_EQ(parts_->scheduler->steps().limit(), 3u);
}

// --- 6. Limits ---

TEST_F(ReconcilerTest, LeasesPassACutOnceAllPsHaveAcceptedIt) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCutsEvery(5)));
  Turn();
  EXPECT_EQ(parts_->scheduler->steps().limit(), 5u);
  AcceptCut();
  Turn();
  EXPECT_EQ(parts_->scheduler->steps().limit(), 2 * kEpochSteps);
}

TEST_F(ReconcilerTest, NoLeasePassesAnEvaluatedEpoch) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithTestSet()));
  Turn();
  EXPECT_EQ(CutStep(), std::nullopt) << "its end is far";
  EXPECT_EQ(parts_->scheduler->steps().limit(), kEpochSteps);
}

TEST_F(ReconcilerTest, NothingIsLeasedWhileLeasesAreRevoked) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Join(0);
  Turn();
  EXPECT_THAT(workers_.Leases(0), Not(IsEmpty()));
  parts_->drain->Stop();
  Turn();
  ASSERT_TRUE(parts_->scheduler->revoking());
  EXPECT_EQ(parts_->scheduler->steps().limit(), 0u);
  EXPECT_EQ(CutStep(), std::nullopt);
}

// --- 7. Serving ---

TEST_F(ReconcilerTest, AfterAFactAllReadyWorkersAreOfferedWork) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Join(0);
  workers_.Join(1);
  workers_.Join(2).ready = false;
  Turn();
  EXPECT_THAT(workers_.Leases(0), Not(IsEmpty()));
  EXPECT_THAT(workers_.Leases(1), Not(IsEmpty()));
  EXPECT_THAT(workers_.Leases(2), IsEmpty());
}

TEST_F(ReconcilerTest, TheFirstLeaseStartsTheClockOfItsEpoch) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Join(0);
  Turn();
  EXPECT_THAT(parts_->scheduler->TakeLeased(), IsEmpty()) << "the turn has taken them";
  loop_.Advance(seconds(3));
  DoneBelow(kEpochSteps);
  EXPECT_EQ(parts_->progress.CloseEpoch(0, loop_.Now()).seconds(), 3);
}

TEST_F(ReconcilerTest, AfterReportsOnlyTheReportersAreOfferedWork) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  const Worker& reporter = workers_.Join(0);
  workers_.Join(1);
  parts_->reported = {reporter.key, reporter.key + 1000};  // the latter is gone
  reconciler_->Turn(Cause::kReports);
  EXPECT_THAT(parts_->reported, IsEmpty());
  EXPECT_THAT(workers_.Leases(0), Not(IsEmpty()));
  EXPECT_THAT(workers_.Leases(1), IsEmpty());
}

// --- Tick ---

TEST_F(ReconcilerTest, ATickIsATurnToo) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCutsEvery(5)));
  workers_.Join(0);
  reconciler_->Tick();
  EXPECT_EQ(CutStep(), 5u);
  EXPECT_THAT(workers_.Leases(0), Not(IsEmpty()));
}

TEST_F(ReconcilerTest, ATickEndsAnEvaluationForALeavingPs) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithTestSet()));
  DoneBelow(3);
  BeginEvaluation();
  SendDeparting(0);
  reconciler_->Tick();
  EXPECT_NE(parts_->scheduler->evaluation(), nullptr);
  loop_.Advance(seconds(5));
  reconciler_->Tick();
  EXPECT_EQ(parts_->scheduler->evaluation(), nullptr);
}

}  // namespace
}  // namespace shoal
