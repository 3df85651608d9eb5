#include "coordinator/run_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/coordinator/run_parts_fixture.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Cause = Wakeup::Cause;

class RunTimelineTest : public RunPartsTest {
 protected:
  // Leads a timeline that was loaded, or that a former coordinator opened.
  void Begin(Job job) {
    ASSERT_NO_FATAL_FAILURE(Lead());
    MakeTimeline(std::move(job));
  }
  void BeginAdopted(Job job, uint64_t base) {
    ASSERT_NO_FATAL_FAILURE(Adopt(kFormer, base));
    MakeTimeline(std::move(job));
  }
  // Answers the next probe of each ps.
  void AnswerProbes(uint64_t base) {
    for (int i = 0; i < kPsCount; ++i) ps(i).Take<proto::ControlRequest>();
    loop_.Advance(seconds(1));
    for (int i = 0; i < kPsCount; ++i) AnswerClaim(i, {.timeline = kFormer, .base = base});
  }
  void Open() { timeline_->OnOpened(opened_.back()); }
  // Opens the timeline and begins to lease steps.
  void Train() {
    timeline_->TakeCounts({kExamples, 0}, "the test");
    parts_->worker_came = true;
    Open();
  }
  static StoredCheckpoint Counted(StoredCheckpoint checkpoint, uint64_t training, uint64_t test) {
    checkpoint.manifest.training_examples = training;
    checkpoint.manifest.test_examples = test;
    return checkpoint;
  }

  static constexpr uint64_t kFormer = 9;  // the timeline of a former coordinator
  std::optional<RunTimeline> timeline_;

 private:
  void MakeTimeline(Job job) {
    MakeParts(std::move(job));
    timeline_.emplace(&*parts_, &wakeup_);
  }
};

TEST_F(RunTimelineTest, TheNewestStoredCountsGiveThePlan) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  timeline_->OnStored({Stored(9), Counted(Stored(6), 200, 50), Counted(Stored(3), 100, 20)});
  ASSERT_TRUE(parts_->plan.has_value());
  EXPECT_EQ(parts_->plan->examples(), 200u);
  EXPECT_EQ(parts_->test_examples, 50u);
  EXPECT_THAT(parts_->stored, SizeIs(3));
  EXPECT_EQ(parts_->stored_at, loop_.Now());
  EXPECT_EQ(parts_->checkpointer->newest()->directory, "step-9");
}

TEST_F(RunTimelineTest, StoredCheckpointsWithoutCountsGiveNoPlan) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  timeline_->OnStored({Stored(9)});
  EXPECT_FALSE(parts_->plan.has_value());
}

TEST_F(RunTimelineTest, AKnownPlanStaysWhenTheStoreIsRead) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  timeline_->TakeCounts({kExamples, 0}, "the test");
  timeline_->OnStored({Counted(Stored(9), 100, 20)});
  EXPECT_EQ(parts_->plan->examples(), kExamples);
  EXPECT_EQ(parts_->counts_source, "the test");
}

TEST_F(RunTimelineTest, OnlyAJobInRoundsGetsRoundsFromTheCounts) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  timeline_->TakeCounts({kExamples, 0}, "the test");
  EXPECT_FALSE(parts_->rounds.has_value());
}

TEST_F(RunTimelineTest, CountsOfASyncJobGiveItsRounds) {
  Job job = MakeJob();
  job.strategy.name = "sync";
  job.strategy.gradients_per_update = 4;
  ASSERT_NO_FATAL_FAILURE(Begin(std::move(job)));
  timeline_->TakeCounts({kExamples, 0}, "the test");
  ASSERT_TRUE(parts_->rounds.has_value());
  EXPECT_EQ(parts_->rounds->max_steps(), 4u);
}

TEST_F(RunTimelineTest, WithoutAWorkerAnOpenTimelineLeasesNoSteps) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Open();
  EXPECT_TRUE(parts_->scheduler->open());
  EXPECT_FALSE(parts_->training());
  EXPECT_EQ(parts_->timeline(), fleet_->timeline());
  EXPECT_EQ(parts_->counters.timelines_opened, 1u);
  ASSERT_TRUE(parts_->cuts.has_value());
  EXPECT_EQ(parts_->cuts->mandatory(), std::numeric_limits<uint64_t>::max());
  loop_.RunUntilIdle();
  EXPECT_TRUE(parts_->history->read());
  EXPECT_FALSE(parts_->history->takes_results());
}

TEST_F(RunTimelineTest, OnceAWorkerCameTrainingBeginsWithTheTimeline) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Train();
  EXPECT_TRUE(parts_->training());
  EXPECT_EQ(parts_->scheduler->steps().total_steps(), 2 * kEpochSteps);
  EXPECT_EQ(parts_->cuts->mandatory(), 2 * kEpochSteps);
  EXPECT_THAT(TakeCauses(), testing::Contains(Cause::kFacts));
  EXPECT_TRUE(parts_->history->takes_results());
}

TEST_F(RunTimelineTest, ReadyWorkersHearOfAnOpenedTimeline) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Join(0).lost_timeline = true;
  workers_.Join(1).ready = false;
  Open();
  EXPECT_EQ(Announced(0), fleet_->timeline());
  EXPECT_FALSE(workers_.Find(0)->lost_timeline);
  EXPECT_EQ(Announced(1), 0u);
}

TEST_F(RunTimelineTest, TheLoadedCheckpointIsTheLastOne) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  StoredCheckpoint loaded = Stored(6);
  loaded.age = seconds(100);
  PsFleet::Opened opened = opened_.back();
  opened.base = 6;
  opened.loaded = loaded;
  timeline_->OnOpened(opened);
  EXPECT_EQ(parts_->checkpointer->last()->directory, "step-6");
  EXPECT_EQ(parts_->scheduler->steps().base(), 6u);
  EXPECT_EQ(parts_->cuts->last().step, 6u);
  EXPECT_EQ(parts_->cuts->last().at, loop_.Now() - seconds(100));
}

TEST_F(RunTimelineTest, TheScheduleOfASeededTimelineCountsFromNow) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Open();
  EXPECT_EQ(parts_->cuts->last().step, 0u);
  EXPECT_EQ(parts_->cuts->last().at, loop_.Now());
}

TEST_F(RunTimelineTest, AnAdoptedTimelineOfUnknownAgeIsDueForACut) {
  ASSERT_NO_FATAL_FAILURE(BeginAdopted(MakeJob(), 5));
  Open();
  EXPECT_EQ(parts_->cuts->last().at,
            loop_.Now() - FromSeconds(parts_->options.job.checkpoint.every_seconds));
}

TEST_F(RunTimelineTest, AnAdoptedTimelineCountsFromACheckpointBelowIt) {
  ASSERT_NO_FATAL_FAILURE(BeginAdopted(MakeJob(), 5));
  timeline_->OnStored({Stored(8), Stored(4), Stored(2)});
  Open();
  EXPECT_EQ(parts_->cuts->last().step, 4u) << "8 is of a timeline that was replaced";
  EXPECT_EQ(parts_->cuts->last().at, parts_->stored_at);
}

TEST_F(RunTimelineTest, TheScheduleGoesOnWhenTrainingBegins) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Open();
  parts_->cuts->Began(7, loop_.Now());
  timeline_->TakeCounts({kExamples, 0}, "the test");
  parts_->worker_came = true;
  timeline_->BeginTraining();
  EXPECT_EQ(parts_->cuts->last().step, 7u);
}

TEST_F(RunTimelineTest, ATimelineThatIsOverLeavesNothingOfItself) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Train();
  parts_->counted = {3};
  parts_->checkpointer->Begin({.timeline = fleet_->timeline(), .step = 5, .term = fleet_->term()});
  timeline_->OnOver("a ps was started again");
  EXPECT_FALSE(parts_->scheduler->open());
  EXPECT_FALSE(parts_->training());
  EXPECT_FALSE(parts_->opened.has_value());
  EXPECT_EQ(parts_->timeline(), 0u);
  EXPECT_THAT(parts_->counted, IsEmpty());
  EXPECT_TRUE(parts_->checkpointer->idle());
  EXPECT_THAT(parts_->checkpointer->TakeOutcomes(), IsEmpty()) << "they are recorded";
  EXPECT_TRUE(parts_->cuts->last().failed);
  EXPECT_TRUE(parts_->shutdown->working());
}

TEST_F(RunTimelineTest, AStopEndsTheRunWhenItsTimelineIsOver) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Train();
  parts_->drain->Stop();
  timeline_->OnOver("a ps was started again");
  EXPECT_FALSE(parts_->shutdown->over());
  EXPECT_THAT(TakeCauses(), testing::Contains(Cause::kFacts));
  parts_->drain->CloseEarly();  // as the next turn does
  EXPECT_TRUE(parts_->shutdown->over());
  EXPECT_FALSE(parts_->drain->kept());
}

TEST_F(RunTimelineTest, WorkersKeepTheStepsThatTheyHold) {
  ASSERT_NO_FATAL_FAILURE(BeginAdopted(MakeJob(), 2));
  proto::WorkerHello hello;
  hello.set_timeline(kFormer);
  for (const uint64_t step : {1, 3, 4}) hello.add_held_steps(step);
  const Worker& worker = workers_.Join(0, hello);
  Train();
  EXPECT_EQ(parts_->scheduler->steps().held(worker.key), 2u) << "1 is done";
  EXPECT_TRUE(parts_->scheduler->steps().Holds(worker.key, 3));
  EXPECT_TRUE(parts_->scheduler->steps().Holds(worker.key, 4));
}

TEST_F(RunTimelineTest, ThePsLearnTheExamplesBeforeTheFirstLease) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  training_examples_ = kExamples;
  Train();
  const auto requests = ps(0).Take<proto::ControlRequest>();
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_EQ(requests[0].claim().training_examples(), kExamples);
  EXPECT_EQ(parts_->scheduler->steps().leased_count(), 0u);
}

TEST_F(RunTimelineTest, ALoadedTimelineBeyondTheJobEndsTheRun) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  opened_.back().base = 2 * kEpochSteps + 1;
  Train();
  EXPECT_THAT(TakeCauses(), testing::Contains(Cause::kFacts));
  ASSERT_TRUE(parts_->failure.has_value());
  EXPECT_TRUE(absl::IsFailedPrecondition(parts_->failure->status)) << parts_->failure->status;
  EXPECT_FALSE(parts_->failure->ends_ps);
  EXPECT_FALSE(parts_->training());
}

TEST_F(RunTimelineTest, AnAdoptedTimelineBeyondTheJobIsRestored) {
  ASSERT_NO_FATAL_FAILURE(BeginAdopted(MakeJob(), 2 * kEpochSteps + 1));
  Train();
  EXPECT_TRUE(parts_->working());
  ASSERT_TRUE(parts_->abandoned.has_value());
  EXPECT_EQ(parts_->abandoned->timeline, kFormer);
  EXPECT_EQ(parts_->abandoned->remedy, AbandonedTimeline::Remedy::kRestore);
  EXPECT_FALSE(parts_->scheduler->open());
}

TEST_F(RunTimelineTest, ARoundLargerThanAnEpochEndsTheRun) {
  Job job = MakeJob();
  job.strategy.name = "sync";
  job.strategy.gradients_per_update = kEpochSteps + 1;
  ASSERT_NO_FATAL_FAILURE(Begin(std::move(job)));
  Train();
  ASSERT_TRUE(parts_->failure.has_value());
  EXPECT_TRUE(absl::IsInvalidArgument(parts_->failure->status)) << parts_->failure->status;
}

TEST_F(RunTimelineTest, ALoadedTimelineWithinARoundEndsTheRun) {
  Job job = MakeJob();
  job.strategy.name = "sync";
  job.strategy.gradients_per_update = 4;
  ASSERT_NO_FATAL_FAILURE(Begin(std::move(job)));
  opened_.back().base = 6;
  Train();
  ASSERT_TRUE(parts_->failure.has_value());
  EXPECT_TRUE(absl::IsFailedPrecondition(parts_->failure->status)) << parts_->failure->status;
}

TEST_F(RunTimelineTest, BeforeTrainingAnAdoptedTimelineFollowsThePs) {
  ASSERT_NO_FATAL_FAILURE(BeginAdopted(MakeJob(), 5));
  Open();
  EXPECT_EQ(parts_->scheduler->steps().base(), 5u);
  AnswerProbes(7);
  timeline_->TakeApplied();
  EXPECT_EQ(parts_->opened->base, 7u);
  EXPECT_EQ(parts_->scheduler->steps().base(), 7u);
}

TEST_F(RunTimelineTest, NoWorkerCanHaveAppliedAStepOfALoadedOne) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Open();
  const StepDispatcher* const steps = &parts_->scheduler->steps();
  timeline_->TakeApplied();
  EXPECT_EQ(&parts_->scheduler->steps(), steps) << "nothing is laid out again";
}

TEST_F(RunTimelineTest, ASecondTimelineIsCountedAndBeginsTraining) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Train();
  timeline_->OnOver("a ps was started again");
  PsFleet::Opened next = opened_.back();
  next.timeline += 1;
  timeline_->OnOpened(next);
  EXPECT_EQ(parts_->counters.timelines_opened, 2u);
  EXPECT_EQ(parts_->cuts->timeline(), next.timeline);
  EXPECT_TRUE(parts_->training());
}

}  // namespace
}  // namespace shoal
