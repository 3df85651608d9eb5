// WorkerReports::CompareWithPs: the steps that a ps has applied and those that workers report.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/worker_reports_fixture.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(WorkerReportsTest, StepsThatAPsLacksAreOpenAgain) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  Ready(1);
  Report(0, {Done(0)});
  Report(1, {Done(1), Done(2)});
  workers_.Orders(1);
  TakeCauses();
  proto::Claimed claimed = Claimed(1, 3);
  claimed.add_applied_after_base(2);
  reports_->CompareWithPs(1, claimed);
  EXPECT_EQ(parts_->scheduler->steps().base(), 1u);
  EXPECT_THAT(parts_->scheduler->steps().done_after_base(), ElementsAre(2));
  EXPECT_THAT(parts_->counted, UnorderedElementsAre(1));
  EXPECT_TRUE(Rejected(1)) << "it reported step 1";
  EXPECT_NE(workers_.Find(0), nullptr);
  EXPECT_THAT(TakeCauses(), Contains(Cause::kFacts));
}

TEST_F(WorkerReportsTest, StepsReportedAfterTheClaimAreNotLacked) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  Report(0, {Done(0), Done(1)});
  TakeCauses();
  reports_->CompareWithPs(0, Claimed(/*base=*/1, /*done_below=*/1));
  EXPECT_EQ(parts_->scheduler->steps().base(), 2u);
  EXPECT_NE(workers_.Find(0), nullptr);
  EXPECT_THAT(TakeCauses(), IsEmpty());
}

TEST_F(WorkerReportsTest, AGapThatExceedsTheWindowIsClaimedAgain) {
  Job job = MakeJob();
  job.strategy.window_steps = 2;
  ASSERT_NO_FATAL_FAILURE(Begin(std::move(job)));
  Ready(0);
  Report(0, {Done(0), Done(1), Done(2)});
  reports_->CompareWithPs(0, Claimed(0, 3));
  ASSERT_TRUE(parts_->abandoned.has_value());
  EXPECT_EQ(parts_->abandoned->timeline, fleet_->timeline());
  EXPECT_EQ(parts_->abandoned->remedy, AbandonedTimeline::Remedy::kClaimAgain);
  EXPECT_FALSE(parts_->training());
  EXPECT_TRUE(Rejected(0));
  reports_->CompareWithPs(1, Claimed(0, 3));  // before the next turn
  EXPECT_EQ(parts_->timeline(), 0u);
}

TEST_F(WorkerReportsTest, APsOfOtherExamplesIsRestored) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  proto::Claimed claimed = Claimed(0, 0);
  claimed.set_training_examples(0);
  reports_->CompareWithPs(0, claimed);
  EXPECT_FALSE(parts_->abandoned.has_value()) << "it does not know them yet";
  claimed.set_training_examples(kExamples + 1);
  reports_->CompareWithPs(0, claimed);
  ASSERT_TRUE(parts_->abandoned.has_value());
  EXPECT_EQ(parts_->abandoned->remedy, AbandonedTimeline::Remedy::kRestore);
  EXPECT_FALSE(parts_->training());
}

TEST_F(WorkerReportsTest, BeforeTrainingTheStepsOfThePsAreTaken) {
  ASSERT_NO_FATAL_FAILURE(Adopt(9, 5));
  Open(MakeJob());
  for (int i = 0; i < kPsCount; ++i) ps(i).Take<proto::ControlRequest>();
  loop_.Advance(std::chrono::seconds(1));
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i, {.timeline = 9, .base = 7});
  reports_->CompareWithPs(0, Claimed(7, 0));
  EXPECT_EQ(parts_->scheduler->steps().base(), 7u);
}

TEST_F(WorkerReportsTest, AtTheEndOfTheJobNoPsIsCompared) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  Report(0, {Done(0)});
  parts_->shutdown->Fail("the values are not finite");
  reports_->CompareWithPs(0, Claimed(0, 1));
  EXPECT_EQ(parts_->scheduler->steps().base(), 1u);
}

}  // namespace
}  // namespace shoal
