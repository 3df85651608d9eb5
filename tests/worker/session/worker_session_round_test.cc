// A session whose leases are of synchronous rounds (docs/protocol.md, section 13).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/session/worker_session_fixture.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class WorkerSessionRoundTest : public WorkerSessionTest {
 protected:
  // Steps and what is said of each, in all reports since the last call.
  std::vector<std::string> TakeDone() {
    std::vector<std::string> done;
    for (const proto::WorkerReport& report : TakeReports()) {
      for (const proto::StepDone& step : report.steps_done().steps()) {
        EXPECT_EQ(report.steps_done().timeline(), kSessionTimeline);
        done.push_back(
            absl::StrCat(step.step(), step.already_applied() ? " already applied" : " done"));
        if (!step.already_applied()) continue;
        proto::StepDone nothing_else;
        nothing_else.set_step(step.step());
        nothing_else.set_already_applied(true);
        EXPECT_EQ(step.SerializeAsString(), nothing_else.SerializeAsString());
      }
    }
    return done;
  }
};

TEST_F(WorkerSessionRoundTest, StepsOfARoundAreComputedFromOnePull) {
  GetReady();
  LeaseOfRound(6, 2, 6, 3);
  ServePs();
  EXPECT_THAT(asked_versions_, Each(6));
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("prefetch 6 2", "train 6"));
  const uint64_t pulls = pulls_;
  FinishStep();
  EXPECT_EQ(last_push_.round().first(), 6u);
  EXPECT_EQ(last_push_.round().count(), 3u);
  EXPECT_EQ(last_push_.round().number(), 2u);
  EXPECT_EQ(last_push_.pulled_version(), 6u);
  EXPECT_FALSE(last_push_.want_values());
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 7"));
  FinishStep();
  LeaseOfRound(8, 1, 6, 3);  // later, as it came back from another worker
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("prefetch 8 1", "train 8"));
  FinishStep();
  EXPECT_EQ(pulls_, pulls) << "they are the same values";
  EXPECT_THAT(TakeDone(), ElementsAre("6 done", "7 done", "8 done"));
}

TEST_F(WorkerSessionRoundTest, EachRoundIsPulled) {
  GetReady();
  LeaseOfRound(6, 1, 6, 3);
  ServePs();
  FinishStep();
  asked_versions_.clear();
  LeaseOfRound(9, 1, 9, 3);
  EXPECT_THAT(computer_.TakeCalls(), Contains("prefetch 9 1"));
  EXPECT_FALSE(computer_.busy()) << "before it has the values of the round";
  ServePs();
  EXPECT_THAT(asked_versions_, testing::AllOf(testing::Not(IsEmpty()), Each(9)));
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 9"));
}

// A cancelled early step goes back to the leases.
TEST_F(WorkerSessionRoundTest, AWorkerTakesNoMoreLeasesThanItMayHold) {
  constexpr uint64_t kMaxLeases = 1 << 14;
  computer_.begins_early = true;
  GetReady();
  complete_below_ = 3;
  LeaseOfRound(0, 1, 0, 3);
  loop_.RunUntilIdle();
  const std::vector<proto::ExchangeRequest> asked = ps(0).Take<proto::ExchangeRequest>();
  Serve(0, asked.back());
  loop_.RunUntilIdle();
  EXPECT_THAT(computer_.TakeCalls(), Contains("train 0"));
  for (uint64_t held = 0; held < kMaxLeases;) {
    const uint64_t count = std::min<uint64_t>(kMaxLeases - held, kTotalSteps - 3);
    LeaseOfRound(3, count, 3, kTotalSteps - 3);
    held += count;
  }
  computer_.TakeCalls();
  LeaseOfRound(3, 1, 3, kTotalSteps - 3);
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty()) << "it is not taken";
  ServePs();  // the other one keeps the version no more
  EXPECT_THAT(computer_.TakeCalls(), Contains("cancel step"));
  LeaseOfRound(3, 1, 3, kTotalSteps - 3);
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty()) << "nor is this one, with step 0 given back";
}

// The worker that computed them is gone, or another one was faster.
TEST_F(WorkerSessionRoundTest, StepsOfARoundThatIsCompleteAreReportedAsDone) {
  GetReady();
  complete_below_ = 9;
  LeaseOfRound(7, 2, 6, 3);
  LeaseOfRound(9, 1, 9, 3);
  ServePs();
  EXPECT_THAT(TakeDone(), ElementsAre("7 already applied", "8 already applied"));
  EXPECT_EQ(std::count(asked_versions_.begin(), asked_versions_.end(), 6), 2)
      << "once of each ps for both steps";
  EXPECT_THAT(TakeEvents(), IsEmpty()) << "no record of what it has not computed";
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("prefetch 7 2", "prefetch 9 1", "cancel prefetch",
                                                 "prefetch 9 1", "train 9"));
  FinishStep();
  EXPECT_THAT(TakeDone(), ElementsAre("9 done"));
}

// Part of the values came from a ps that had them still.
TEST_F(WorkerSessionRoundTest, AfterARejectionTheValuesArePulledAnew) {
  GetReady();
  LeaseOfRound(6, 1, 6, 3);
  ServePs();
  FinishStep();
  complete_below_ = 12;
  LeaseOfRound(9, 1, 9, 3);
  ServePs();
  complete_below_ = 0;
  asked_versions_.clear();
  computer_.TakeCalls();
  LeaseOfRound(7, 1, 6, 3);
  ServePs();
  EXPECT_THAT(asked_versions_, testing::AllOf(testing::Not(IsEmpty()), Each(6)));
}

TEST_F(WorkerSessionRoundTest, AnAppliedStepIsReportedOverALaterStream) {
  GetReady();
  complete_below_ = 9;
  LeaseOfRound(8, 1, 6, 3);
  TakeReports();
  LoseCoordinator();
  ServePs();
  Reconnect();
  Welcome();
  EXPECT_THAT(TakeDone(), ElementsAre("8 already applied"));
}

TEST_F(WorkerSessionRoundTest, ANewTimelinePullsTheVersionAgain) {
  GetReady();
  LeaseOfRound(6, 1, 6, 3);
  ServePs();
  FinishStep();
  Open(kSessionTimeline + 1);
  ServePs();
  asked_versions_.clear();
  LeaseOfRound(6, 1, 6, 3);
  ServePs();
  EXPECT_THAT(asked_versions_, testing::Not(IsEmpty()));
}

TEST_F(WorkerSessionRoundTest, ADrainingWorkerLeavesWhenAllItHoldsIsApplied) {
  GetReady();
  complete_below_ = 9;
  LeaseOfRound(7, 2, 6, 3);
  session_->Drain("SIGTERM");
  SendNoLeaseFollows();
  ServePs();
  EXPECT_THAT(TakeDone(), ElementsAre("7 already applied", "8 already applied"));
  EXPECT_TRUE(coordinator().finished().has_value());
}

TEST_F(WorkerSessionRoundTest, ALeaseBeyondItsRoundIsNotTaken) {
  GetReady();
  LeaseOfRound(7, 3, 6, 3);
  LeaseOfRound(5, 1, 6, 3);
  LeaseOfRound(6, 1, 6, 0);
  LeaseOfRound(kTotalSteps - 1, 1, UINT64_MAX - 1, 3);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty());
  LeaseOfRound(6, 3, 6, 3);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("prefetch 6 3", "train 6"));
}

}  // namespace
}  // namespace shoal
