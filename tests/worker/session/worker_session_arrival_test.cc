// A session whose computer begins a step before all of its parameters are there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "tests/common/metrics/sample_value.h"
#include "tests/worker/session/worker_session_fixture.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class WorkerSessionArrivalTest : public WorkerSessionTest {
 protected:
  WorkerSessionArrivalTest() {
    computer_.begins_early = true;
    GetReady();
  }

  // Takes what the ps are asked for; nothing is answered.
  void TakePulls() {
    loop_.RunUntilIdle();
    for (int i = 0; i < 2; ++i) {
      for (const proto::ExchangeRequest& request : ps(i).Take<proto::ExchangeRequest>()) {
        const proto::Pull& pull = request.pull();
        for (uint32_t k = 0; k < pull.chunk_count(); ++k)
          asked_.push_back({i, static_cast<int>(pull.first_chunk() + k), pull.version()});
      }
    }
  }
  void SendOne() {
    const Asked first = asked_.front();
    asked_.pop_front();
    ExchangePeer::SendValues(ps(first.ps), timeline_, first.chunk, first.version, 0,
                             model_.Filled(first.ps, first.chunk, 1));
    loop_.RunUntilIdle();
  }
  void SendAll() {
    while (!asked_.empty()) SendOne();
  }
  // Up to a step, 6, that is begun with one chunk.
  void BeginEarly(bool of_round = true) {
    of_round ? LeaseOfRound(6, 1, 6, 3) : Lease(6, 1);
    TakePulls();
    ASSERT_GE(asked_.size(), 3u);
    SendOne();
    ASSERT_THAT(computer_.TakeCalls(), Contains("train 6"));
  }
  // Ends a cancelled step.
  void EndCancelled() {
    computer_.Finish(absl::CancelledError("cancelled"));
    loop_.RunUntilIdle();
  }
  std::vector<uint64_t> TakeAlreadyApplied() {
    std::vector<uint64_t> steps;
    for (const proto::WorkerReport& report : TakeReports()) {
      for (const proto::StepDone& step : report.steps_done().steps()) {
        EXPECT_TRUE(step.already_applied());
        steps.push_back(step.step());
      }
    }
    return steps;
  }

  struct Asked {
    int ps;
    int chunk;
    uint64_t version;
  };
  std::deque<Asked> asked_;
};

TEST_F(WorkerSessionArrivalTest, AStepIsBegunOnTheFirstChunk) {
  for (const bool of_round : {true, false}) {
    SCOPED_TRACE(of_round);
    of_round ? LeaseOfRound(6, 1, 6, 3) : Lease(7, 1);
    TakePulls();
    EXPECT_FALSE(computer_.busy());
    const size_t chunks = asked_.size();
    for (size_t here = 1; here < chunks; ++here) {
      SendOne();
      EXPECT_TRUE(computer_.busy());
      EXPECT_THAT(computer_.missing_at_begin, SizeIs(chunks - 1));
      EXPECT_THAT(computer_.missing_now, SizeIs(chunks - here));
    }
    SendOne();
    EXPECT_THAT(computer_.missing_now, IsEmpty());
    FinishStep();
    EXPECT_THAT(TakeEvents(), ElementsAre(of_round ? "step 70 6" : "step 70 7"));
    EXPECT_EQ(last_push_.pulled_version(), of_round ? 6u : 0u);
    EXPECT_EQ(last_push_.has_round(), of_round);
  }
  // Which has brought what the next one is computed from.
  Lease(8, 1);
  EXPECT_TRUE(computer_.busy());
  EXPECT_THAT(computer_.missing_at_begin, IsEmpty());
}

TEST_F(WorkerSessionArrivalTest, AStepThatDoesNotBeginEarlyBeginsWithAllValues) {
  computer_.begins_early = false;
  LeaseOfRound(6, 1, 6, 3);
  TakePulls();
  while (asked_.size() > 1) SendOne();
  EXPECT_FALSE(computer_.busy());
  SendOne();
  EXPECT_TRUE(computer_.busy());
  EXPECT_THAT(computer_.missing_at_begin, IsEmpty());
  EXPECT_EQ(computer_.arrived, 0);
}

TEST_F(WorkerSessionArrivalTest, ARejectedVersionDropsTheStep) {
  BeginEarly();
  loop_.Advance(seconds(2));
  ExchangePeer::RejectVersion(ps(1), kSessionTimeline, 6);
  EXPECT_THAT(TakeAlreadyApplied(), ElementsAre(6));
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("cancel step", "cancel prefetch"));
  EXPECT_EQ(SampleValue(*session_, "shoal_worker_phase_seconds_total", {"pull"}), 2);
  LeaseOfRound(9, 1, 9, 3);
  asked_.clear();
  TakePulls();
  EXPECT_THAT(asked_, IsEmpty()) << "the computer may still read the parameters";
  EndCancelled();
  TakePulls();
  EXPECT_THAT(asked_, Not(IsEmpty()));
  SendAll();
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 9"));
  EXPECT_EQ(pushes_[6], 0);
}

TEST_F(WorkerSessionArrivalTest, ALostTimelineDropsIt) {
  BeginEarly();
  ExchangePeer::Reject(ps(1), {.timeline = kSessionTimeline}, kSessionTimeline + 1,
                       "another timeline");
  loop_.RunUntilIdle();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("cancel all"));
  const auto reports = TakeReports();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_EQ(reports[0].timeline_lost().timeline(), kSessionTimeline);
  Open(kSessionTimeline + 1);
  LeaseOfRound(6, 1, 6, 3);
  asked_.clear();
  EndCancelled();
  TakePulls();
  EXPECT_THAT(pushes_, IsEmpty());
  SendAll();
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 71 6"));
}

TEST_F(WorkerSessionArrivalTest, ADrainingWorkerFinishesIt) {
  BeginEarly();
  session_->Drain("SIGTERM");
  SendNoLeaseFollows();
  EXPECT_FALSE(coordinator().finished().has_value());
  SendAll();
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 6"));
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionArrivalTest, ADrainDoesNotWaitForAPsForEver) {
  BeginEarly();
  session_->Drain("SIGTERM");
  loop_.Advance(kDrainTimeout);
  ExpectOver(WorkerSession::End::kDrained);
}

// What was asked for comes all the same, and is of use where it is known to be of the version.
TEST_F(WorkerSessionArrivalTest, AStepCancelledAfterAHaltIsPulledAgain) {
  for (const bool of_round : {true, false}) {
    SCOPED_TRACE(of_round);
    Open(of_round ? kSessionTimeline + 1 : kSessionTimeline);
    asked_.clear();
    BeginEarly(of_round);
    proto::WorkerOrder order;
    order.mutable_halt()->set_timeline(timeline_);
    Order(order);
    order.mutable_resume()->set_timeline(timeline_);
    order.mutable_resume()->set_below(6);
    Order(order);
    EXPECT_THAT(computer_.TakeCalls(), ElementsAre("cancel all", "cancel prefetch"));
    of_round ? LeaseOfRound(6, 1, 6, 3) : Lease(6, 1);
    EndCancelled();
    while (!asked_.empty()) {
      EXPECT_FALSE(computer_.busy());
      SendOne();
    }
    TakePulls();
    EXPECT_EQ(computer_.busy(), of_round);
    EXPECT_EQ(asked_.empty(), of_round);
    SendAll();
    FinishStep();
    EXPECT_THAT(TakeEvents(), SizeIs(1));
  }
}

// It would stand for what comes after.
TEST_F(WorkerSessionArrivalTest, NoStepIsBegunThatWouldNotBeLater) {
  LeaseOfRound(6, 1, 6, 3);
  TakePulls();
  Halt();
  SendOne();
  EXPECT_FALSE(computer_.busy());
  Resume(20);
  SendOne();
  EXPECT_TRUE(computer_.busy());
  SendAll();
  FinishStep();

  LeaseOfRound(9, 1, 9, 3);
  TakePulls();
  OrderEvaluation(5, 0);
  while (asked_.size() > 1) SendOne();
  EXPECT_FALSE(computer_.busy());
}

// A ps that lives on in the former timeline gets no mixture.
TEST_F(WorkerSessionArrivalTest, NoneIsBegunWhileGradientsAreStillSent) {
  BeginEarly();
  SendAll();
  computer_.FinishChunks();
  computer_.Finish();
  Open(kSessionTimeline + 1);
  LeaseOfRound(6, 1, 6, 3);
  loop_.RunUntilIdle();
  // Both ps are asked for all that they have, as nobody looks at the pushes that lie there.
  for (int i = 0; i < 2; ++i) {
    for (size_t k = 0; k + 1 < model_.chunks(i).size(); ++k) {
      ExchangePeer::SendValues(ps(i), timeline_, k, 6, 0, model_.Filled(i, static_cast<int>(k), 1));
    }
  }
  loop_.RunUntilIdle();
  EXPECT_FALSE(computer_.busy());
  for (int i = 0; i < 2; ++i) ps(i).Take<proto::ExchangeRequest>();
  const size_t last = model_.chunks(0).size() - 1;
  ExchangePeer::SendValues(ps(0), timeline_, last, 6, 0,
                           model_.Filled(0, static_cast<int>(last), 1));
  loop_.RunUntilIdle();
  EXPECT_TRUE(computer_.busy());
}

TEST_F(WorkerSessionArrivalTest, SaysThatItWaits) {
  BeginEarly();
  EXPECT_EQ(SampleValue(*session_, "shoal_worker_waiting_seconds", {"ps", "1", "no answer"}), 0);
  loop_.Advance(seconds(6));
  const auto reports = TakeReports();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_THAT(reports[0].waiting().what(),
              AllOf(HasSubstr("step 6 "), HasSubstr("ps 0 at ps-0:1 (no answer), ps 1")));
  EXPECT_FALSE(reports[0].waiting().computing());
}

TEST_F(WorkerSessionArrivalTest, WaitingIsNoTimeOfComputing) {
  const auto phase = [this](const char* name) {
    return SampleValue(*session_, "shoal_worker_phase_seconds_total", {name});
  };
  LeaseOfRound(6, 1, 6, 3);
  TakePulls();
  loop_.Advance(milliseconds(500));
  SendOne();
  loop_.Advance(milliseconds(2000));
  SendAll();
  computer_.FinishChunks();
  computer_.Finish(BatchOutcome{
      .examples = 16, .metric_sums = {8}, .compute_us = 750'000, .parameter_wait_us = 1'000'000});
  ServePs();
  EXPECT_DOUBLE_EQ(*phase("pull"), 1.5);
  EXPECT_DOUBLE_EQ(*phase("compute"), 0.75);
  EXPECT_DOUBLE_EQ(*phase("push"), 0.25);
}

}  // namespace
}  // namespace shoal
