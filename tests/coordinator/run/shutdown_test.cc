#include "coordinator/run/shutdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "common/daemon/process/exit_code.h"
#include "common/log/logging.h"
#include "common/run/run_outcome.h"
#include "tests/coordinator/run_parts_fixture.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using Phase = Shutdown::Phase;

class ShutdownTest : public RunPartsTest {
 protected:
  // Leads, and a checkpoint is there.
  void Begin() {
    ASSERT_NO_FATAL_FAILURE(Lead());
    MakeParts(MakeJob());
    checkpoint_ = WriteSmallCheckpoint(&store_, 1, 20);
  }
  void BeginToLead() {
    parts_->lock->Acquire({}, [](const absl::Status&) {});
    loop_.RunUntilIdle();
    ASSERT_TRUE(parts_->lock->leading());
  }
  bool ModelIsThere() const {
    return std::filesystem::exists(RunPaths{directory_.path()}.model() + "/model.safetensors");
  }
  void BothPsStop() {
    for (int i = 0; i < kPsCount; ++i) parts_->shutdown->OnPsStopping(i);
    loop_.RunUntilIdle();
  }
  // Whether it was told that the job is done; with which failure.
  std::optional<std::string> JobDone(int index) {
    for (const proto::WorkerOrder& order : workers_.Orders(index)) {
      if (order.has_job_done()) return order.job_done().failure();
    }
    return std::nullopt;
  }

  StoredCheckpoint checkpoint_;
};

TEST_F(ShutdownTest, TheModelIsSavedThenWorkersGoThenPs) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  parts_->scheduler->Open({.timeline = fleet_->timeline(), .total_steps = 20});
  parts_->scheduler->Begin();
  Worker& worker = workers_.Join(0);
  parts_->shutdown->Save({.values = checkpoint_});
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kSaving);
  parts_->scheduler->Offer(worker);
  EXPECT_FALSE(worker.in_line) << "it gets no more work";
  EXPECT_FALSE(ModelIsThere());
  EXPECT_EQ(JobDone(0), "");
  EXPECT_TRUE(ModelIsThere());
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kDismissingWorkers);
  EXPECT_FALSE(ToldToStop(0)) << "a worker may be pushing yet";
  workers_.Break(0);
  EXPECT_TRUE(ToldToStop(0) && ToldToStop(1));
  parts_->shutdown->OnPsStopping(0);
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kDismissingPs);
  BothPsStop();
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kOver);
  EXPECT_TRUE(outcome_.has_value() && outcome_->ok());
  EXPECT_TRUE(over_.has_value() && over_->ok());
}

TEST_F(ShutdownTest, TheEvaluatorGoesLastAndTakesTheTimeItTakes) {
  std::optional<std::string> dismissed;
  dismiss_evaluator_ = [&](const std::string& failure) { dismissed = failure; };
  ASSERT_NO_FATAL_FAILURE(Begin());
  workers_.Join(0);
  parts_->shutdown->Save({.values = checkpoint_});
  loop_.RunUntilIdle();
  parts_->shutdown->OnEvaluatorGone();  // of itself: nothing yet
  workers_.Break(0);
  EXPECT_FALSE(dismissed.has_value()) << "ps are still to go";
  BothPsStop();
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kDismissingEvaluator);
  EXPECT_EQ(dismissed, "");
  loop_.Advance(seconds(1000));
  EXPECT_FALSE(over_.has_value());
  parts_->shutdown->OnEvaluatorGone();
  loop_.RunUntilIdle();
  EXPECT_TRUE(over_.has_value() && over_->ok());
}

TEST_F(ShutdownTest, ToldToStopItDoesNotWaitForTheEvaluator) {
  dismiss_evaluator_ = [](const std::string&) {};
  ASSERT_NO_FATAL_FAILURE(Begin());
  parts_->shutdown->OnStop();
  EXPECT_TRUE(parts_->shutdown->working());
  parts_->shutdown->Fail("not finite");
  loop_.Advance(seconds(11));
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kDismissingEvaluator);
  parts_->shutdown->OnStop();
  loop_.RunUntilIdle();
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(absl::IsDataLoss(*over_)) << *over_;
}

TEST_F(ShutdownTest, AWorkerThatStaysIsNotAwaitedForLong) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  workers_.Join(0);
  parts_->shutdown->Save({.values = checkpoint_});
  loop_.Advance(seconds(6));
  EXPECT_TRUE(ToldToStop(0));
  EXPECT_FALSE(over_.has_value());
  loop_.Advance(seconds(6));
  EXPECT_TRUE(over_.has_value() && over_->ok());
}

TEST_F(ShutdownTest, AStreamWithoutAHelloIsNotWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  workers_.Join(0);
  workers_.Connect(1);
  parts_->shutdown->Save({.values = checkpoint_});
  loop_.RunUntilIdle();
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kDismissingWorkers);
  workers_.Break(0);
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kDismissingPs);
}

TEST_F(ShutdownTest, AWorkerThatComesLateIsToldInPlaceOfAWelcome) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  workers_.Join(0);
  parts_->shutdown->Save({.values = checkpoint_});
  EXPECT_EQ(JobDone(0), "");
  workers_.Connect(1);
  workers_.SendHello(1);
  const std::vector<proto::WorkerOrder> orders = workers_.Orders(1);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_TRUE(orders[0].has_job_done());
}

// It would look for this coordinator for minutes.
TEST_F(ShutdownTest, AFailureIsKeptForAListedWorkerThatIsStarting) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  for (const int index : {0, 1, 2}) workers_.Join(index);
  parts_->shutdown->Fail("not finite");
  for (const int index : {0, 1, 2}) workers_.Break(index);
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kDismissingWorkers);
  workers_.Connect(3);
  workers_.SendHello(3);
  EXPECT_EQ(JobDone(3), "not finite");
  workers_.Break(3);
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kDismissingPs);
}

// They have not found this coordinator yet, and would look for it for ever.
TEST_F(ShutdownTest, AJobThatWasFoundFinishedWaitsForWorkersToBeTold) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  parts_->shutdown->Save({.values = checkpoint_, .found = true});
  EXPECT_FALSE(ToldToStop(0));
  loop_.Advance(seconds(6));
  EXPECT_TRUE(ToldToStop(0));
}

TEST_F(ShutdownTest, AModelThatCannotBeSavedFailsTheRunAndKeepsWorkersAndPs) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  workers_.Join(0);
  std::filesystem::create_directory(RunPaths{directory_.path()}.model());
  WriteAll(RunPaths{directory_.path()}.model() + "/mine", "something else");
  parts_->shutdown->Save({.values = checkpoint_});
  EXPECT_EQ(JobDone(0), std::nullopt);
  EXPECT_FALSE(ToldToStop(0));
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(absl::IsFailedPrecondition(*over_)) << *over_;
  EXPECT_EQ(parts_->shutdown->failure(), over_->message());
}

TEST_F(ShutdownTest, ABestCheckpointThatIsDamagedGivesWayToTheLast) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  const StoredCheckpoint last = WriteSmallCheckpoint(&store_, 1, 30);
  for (const std::string& name : NamesIn(checkpoint_.directory)) {
    if (name.ends_with(".safetensors")) std::filesystem::remove(checkpoint_.directory + "/" + name);
  }
  parts_->shutdown->Save({.values = checkpoint_, .last = last});
  loop_.RunUntilIdle();
  EXPECT_TRUE(ModelIsThere());
  EXPECT_FALSE(parts_->shutdown->over());
}

TEST_F(ShutdownTest, AFailureDismissesAllAndLeavesNoModel) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  for (const int index : {0, 1, 2, 3}) workers_.Join(index);
  parts_->shutdown->Fail("not finite");
  EXPECT_EQ(JobDone(0), "not finite");
  for (const int index : {0, 1, 2, 3}) workers_.Break(index);
  EXPECT_TRUE(ToldToStop(1));
  BothPsStop();
  EXPECT_TRUE(absl::IsDataLoss(over_.value_or(absl::OkStatus())));
  EXPECT_EQ(parts_->shutdown->failure(), "not finite");
  EXPECT_FALSE(ModelIsThere());
}

TEST_F(ShutdownTest, AFailureForGoodIsToldToTheWorkersAndThePsStay) {
  std::optional<std::string> dismissed;
  dismiss_evaluator_ = [&](const std::string& failure) { dismissed = failure; };
  ASSERT_NO_FATAL_FAILURE(Begin());
  BeginToLead();
  for (const int index : {0, 1, 2, 3}) workers_.Join(index);
  parts_->shutdown->BreakOff(absl::FailedPreconditionError("no room"));
  EXPECT_EQ(JobDone(0), "no room");
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kDismissingWorkers);
  EXPECT_EQ(dismissed, std::nullopt);
  for (const int index : {0, 1, 2, 3}) workers_.Break(index);
  EXPECT_EQ(dismissed, "no room");
  EXPECT_FALSE(over_.has_value());
  parts_->shutdown->OnEvaluatorGone();
  loop_.RunUntilIdle();
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(absl::IsFailedPrecondition(*over_)) << *over_;
  EXPECT_EQ(parts_->shutdown->failure(), "no room");
  EXPECT_EQ(ReadRunOutcome(RunPaths{directory_.path()})->exit_code, kExitBadConfiguration);
  EXPECT_FALSE(ToldToStop(0));
}

TEST_F(ShutdownTest, AFailureThatARestartMayCureIsNotTold) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  BeginToLead();
  workers_.Join(0);
  parts_->shutdown->BreakOff(absl::UnavailableError("the disk is full"));
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kBrokenOff);
  EXPECT_EQ(JobDone(0), std::nullopt);
  EXPECT_TRUE(absl::IsUnavailable(over_.value_or(absl::OkStatus())));
}

TEST_F(ShutdownTest, BeingFencedOffEndsNoJob) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  BeginToLead();
  workers_.Join(0);
  parts_->shutdown->BreakOff(absl::AbortedError("fenced off"));
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kBrokenOff);
  EXPECT_EQ(JobDone(0), std::nullopt);
}

TEST_F(ShutdownTest, ACoordinatorThatDoesNotLeadEndsNoJob) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  workers_.Join(0);
  parts_->shutdown->BreakOff(absl::FailedPreconditionError("another one leads"));
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kBrokenOff);
  EXPECT_EQ(JobDone(0), std::nullopt);
}

TEST_F(ShutdownTest, AStopDoesNotHideAFailureThatIsBeingTold) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  BeginToLead();
  workers_.Join(0);
  parts_->shutdown->BreakOff(absl::FailedPreconditionError("no room"));
  parts_->shutdown->Over(absl::CancelledError("stopped"));
  loop_.RunUntilIdle();
  EXPECT_EQ(Message(outcome_), "no room");
  EXPECT_EQ(Message(over_), "no room");
}

TEST_F(ShutdownTest, ALeaderWritesItsEndIntoTheRunDirectory) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  const RunPaths paths{directory_.path()};
  parts_->lock->Acquire({}, [](const absl::Status&) {});
  loop_.RunUntilIdle();
  parts_->shutdown->Over(absl::DataLossError("not finite"));
  loop_.RunUntilIdle();
  const std::optional<RunOutcome> outcome = ReadRunOutcome(paths);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->exit_code, kExitBadData);
  EXPECT_EQ(outcome->cause, "not finite");
  EXPECT_TRUE(ReadLeaseHolder(paths.lease(), RealFileSystem()).value().left);
}

TEST_F(ShutdownTest, AFencedOffCoordinatorWritesNoEnd) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  parts_->lock->Acquire({}, [](const absl::Status&) {});
  loop_.RunUntilIdle();
  parts_->shutdown->Over(absl::AbortedError("fenced off"));
  loop_.RunUntilIdle();
  EXPECT_TRUE(over_.has_value());
  EXPECT_FALSE(ReadRunOutcome(RunPaths{directory_.path()}).has_value());
}

TEST_F(ShutdownTest, ACoordinatorThatDidNotLeadWritesNoEnd) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  parts_->shutdown->Over(absl::FailedPreconditionError("another one leads"));
  loop_.RunUntilIdle();
  EXPECT_TRUE(over_.has_value());
  EXPECT_FALSE(ReadRunOutcome(RunPaths{directory_.path()}).has_value());
}

TEST_F(ShutdownTest, AStopWhileTheModelIsSavedEndsAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  workers_.Join(0);
  parts_->shutdown->Save({.values = checkpoint_});
  parts_->shutdown->Over(absl::CancelledError("stopped"));
  parts_->shutdown->Over(absl::InternalError("too late"));
  EXPECT_EQ(JobDone(0), std::nullopt);
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kOver);
  EXPECT_EQ(Message(outcome_), "stopped");
  EXPECT_EQ(Message(over_), "stopped");
  EXPECT_EQ(parts_->shutdown->failure(), "") << "a stop is none";
}

TEST_F(ShutdownTest, WritesAreAwaitedButNotForEver) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  owed_ = {"history.csv", "evaluations.csv"};
  parts_->shutdown->Over(absl::CancelledError("stopped"));
  loop_.Advance(seconds(2));
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kBrokenOff);
  EXPECT_FALSE(parts_->shutdown->job_ended()) << "who goes now is missed";
  EXPECT_EQ(Message(outcome_), "stopped");
  owed_.pop_back();
  parts_->shutdown->OnWritten();
  loop_.RunUntilIdle();
  EXPECT_FALSE(over_.has_value()) << "one of them failed, and is tried again";
  owed_.clear();
  parts_->shutdown->OnWritten();
  loop_.RunUntilIdle();
  EXPECT_EQ(Message(over_), "stopped");
}

TEST_F(ShutdownTest, ADiskThatDoesNotAnswerDoesNotHoldTheEndUp) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  owed_ = {"/run/history.csv: no space left"};
  testing::internal::CaptureStderr();
  parts_->shutdown->Over(absl::CancelledError("stopped"));
  loop_.Advance(seconds(4));
  FlushLog(std::chrono::minutes(1));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(owed_[0])) << "what is lost";
  EXPECT_EQ(Message(over_), "stopped");
}

}  // namespace
}  // namespace shoal
