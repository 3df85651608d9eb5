// What a WorkerSession says of itself: what it does, whom it waits for, where its time goes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/metrics/sample_value.h"
#include "tests/worker/session/worker_session_fixture.h"
#include "worker/session/worker_session.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(WorkerSessionTest, AStepIsNotReportedBeforeEveryPsHasIt) {
  StartStep(7);
  computer_.FinishChunks();
  computer_.Finish();
  loop_.Advance(seconds(6));
  const auto reports = TakeReports();
  ASSERT_THAT(reports, SizeIs(1)) << "but the coordinator hears what it waits for";
  EXPECT_EQ(reports[0].waiting().what(),
            "pushing the gradient of step 7 to ps 0 at ps-0:1 (no answer), ps 1 at ps-1:1 (no "
            "answer) for 5 s");
  EXPECT_FALSE(reports[0].waiting().computing());
  EXPECT_THAT(TakeEvents(), IsEmpty());
  ServePs();
  EXPECT_THAT(TakeReports(), SizeIs(1));
}

// A step of several batches may take minutes.
TEST_F(WorkerSessionTest, SaysHowFarALongStepIs) {
  StartStep(7);
  computer_.progress_now = {.batches_done = 40, .batches = 100};
  loop_.Advance(seconds(6));
  const auto reports = TakeReports();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_EQ(reports[0].waiting().what(), "computing step 7, batch 41 of 100, for 5 s");
  EXPECT_TRUE(reports[0].waiting().computing());
}

TEST_F(WorkerSessionTest, SaysWhereItsTimeGoes) {
  const auto phase = [this](const char* name) {
    return SampleValue(*session_, "shoal_worker_phase_seconds_total", {name});
  };
  const auto waits = [this](const char* type, const char* index, const char* why) {
    return SampleValue(*session_, "shoal_worker_waiting_seconds", {type, index, why});
  };
  loop_.Advance(milliseconds(30));
  EXPECT_EQ(waits("chief", "0", "no connection"), 0.03);
  GetReady();
  EXPECT_EQ(SampleValue(*session_, "shoal_worker_connected"), 1);
  loop_.Advance(seconds(2));
  EXPECT_EQ(waits("chief", "0", "no steps"), 2);
  Lease(7, 2);
  EXPECT_EQ(waits("chief", "0", "no steps"), std::nullopt);
  loop_.Advance(seconds(3));  // the ps take their time with the parameters
  EXPECT_EQ(waits("ps", "1", "no answer"), 3);
  ServePs();
  EXPECT_EQ(SampleValue(*session_, "shoal_worker_leased_steps"), 1);
  loop_.Advance(seconds(5));
  FinishStep();
  EXPECT_DOUBLE_EQ(*phase("idle"), 2.03);
  EXPECT_EQ(phase("pull"), 3);
  EXPECT_DOUBLE_EQ(*phase("push") + *phase("input_wait") + *phase("compute"), 5);
  EXPECT_EQ(phase("evaluate"), 0);
  EXPECT_EQ(SampleValue(*session_, "shoal_worker_steps_total"), 1);
  // Every chunk that is trained went out, and came back.
  const auto bytes = [this](const char* direction) {
    return SampleValue(*session_, "shoal_worker_payload_bytes_total", {"0", direction, "tcp"});
  };
  EXPECT_GT(*bytes("sent"), 0);
  EXPECT_GT(*bytes("received"), *bytes("sent")) << "the pull besides";
  LoseCoordinator();
  EXPECT_EQ(SampleValue(*session_, "shoal_worker_connected"), 0);
}

TEST_F(WorkerSessionTest, ReadyUnlessItOpensItsDataOrLeaves) {
  EXPECT_EQ(session_->CheckReady(), absl::OkStatus()) << "a coordinator need not be there";
  Welcome();
  EXPECT_EQ(session_->CheckReady(), absl::UnavailableError("opening the job's data"));
  computer_.FinishPrepare();
  EXPECT_EQ(session_->CheckReady(), absl::OkStatus());
  Open(kSessionTimeline);
  ServePs();
  Lease(7, 1);
  ServePs();
  session_->Drain("SIGTERM");
  EXPECT_EQ(session_->CheckReady(), absl::FailedPreconditionError("draining"));
}

}  // namespace
}  // namespace shoal
