// Answers that wait for a worker that does not read: rules 4 and 5, and what they cost.
#include <gmock/gmock.h>

#include "ps/parameter_server.h"
#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

using testing::HasSubstr;

class UnreadAnswersTest : public ParameterServerTest {
 protected:
  // A worker that does not read.
  Client ConnectSleeper() {
    Client worker = ConnectWorker();
    worker.received->reads = false;
    return worker;
  }
  uint32_t chunks() const { return static_cast<uint32_t>(shard_map_.ps(0).chunks.size()); }
  void SendPush(Client& worker, uint64_t timeline, uint64_t step, uint32_t chunk) {
    proto::ExchangeRequest request;
    request.mutable_push()->set_timeline(timeline);
    request.mutable_push()->set_step(step);
    request.mutable_push()->set_chunk(chunk);
    request.mutable_push()->set_want_values(true);
    ones_.assign(shard_map_.ps(0).chunks[chunk].size, 1.0f);
    worker.callbacks.on_message(MakeMessage(request, {{reinterpret_cast<const char*>(ones_.data()),
                                                       ones_.size() * sizeof(float), nullptr}}));
  }
  std::vector<float> ones_;
};

TEST_F(UnreadAnswersTest, WorkersThatDoNotReadCostNoValues) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  std::vector<Client> sleepers;
  Client worker = ConnectWorker();
  for (uint64_t step = 0; step < 40; ++step) {
    sleepers.push_back(ConnectSleeper());
    sleepers.back().callbacks.on_message(MakeMessage(Pull(kTerm, 0, chunks())));
    PushStep(worker, kTerm, step);
    worker.payload.clear();
  }
  EXPECT_LE(server_->variables()->buffers().spare_count(), 1u);
}

TEST_F(UnreadAnswersTest, PulledValuesAreThoseOfTheMomentTheyAreRead) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client sleeper = ConnectSleeper();
  sleeper.callbacks.on_message(MakeMessage(Pull(kTerm, 0, chunks())));
  Client worker = ConnectWorker();
  PushStep(worker, kTerm, 0);
  ASSERT_TRUE(sleeper.received->ReadOne());
  EXPECT_EQ(sleeper.Take<proto::ExchangeReply>().values().version(), 1u);
  PushStep(worker, kTerm, 1);
  sleeper.received->Read();
  for (uint32_t k = 1; k < chunks(); ++k) {
    EXPECT_EQ(sleeper.Take<proto::ExchangeReply>().values().version(), 2u);
  }
  EXPECT_TRUE(sleeper.quiet());
}

// The answer says that the step is applied, with what the chunk is when the answer is made.
TEST_F(UnreadAnswersTest, AnAppliedStepIsAnsweredWithTheValuesOfNow) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client sleeper = ConnectSleeper();
  SendPush(sleeper, kTerm, 0, 0);
  Client worker = ConnectWorker();
  const proto::ExchangeReply later = Push(worker, kTerm, 1, 0, /*want_values=*/true);
  sleeper.received->Read();
  const proto::Applied applied = sleeper.Take<proto::ExchangeReply>().applied();
  EXPECT_EQ(applied.step(), 0u);
  EXPECT_FALSE(applied.repeated());
  EXPECT_EQ(applied.staleness(), 0u);
  EXPECT_EQ(applied.version(), later.applied().version());
  ASSERT_EQ(sleeper.payload.size(), 1u);
  EXPECT_EQ(sleeper.payload[0].data, worker.payload[0].data);
}

TEST_F(UnreadAnswersTest, AnAnswerReadUnderAnotherTimelineIsARejection) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client sleeper = ConnectSleeper();
  SendPush(sleeper, kTerm, 0, 0);
  sleeper.callbacks.on_message(MakeMessage(Pull(kTerm, 0, chunks())));
  LoadJob(control, kTerm + 1);
  sleeper.received->Read();
  for (int i = 0; i < 2; ++i) {
    const proto::Rejection rejection = sleeper.Take<proto::ExchangeReply>().rejection();
    EXPECT_EQ(rejection.timeline(), kTerm + 1);
    EXPECT_EQ(rejection.requested_timeline(), kTerm);
  }
  EXPECT_TRUE(sleeper.quiet()) << "one rejection answers a whole pull";
}

// A push that came before its timeline did is not applied, whenever its answer is read.
TEST_F(UnreadAnswersTest, ARejectedPushStaysRejected) {
  Client sleeper = ConnectSleeper();
  SendPush(sleeper, kTerm, 0, 0);
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  sleeper.received->Read();
  EXPECT_THAT(sleeper.Take<proto::ExchangeReply>().rejection().reason(), HasSubstr("is empty"));
  EXPECT_EQ(server_->variables()->chunk(0).version(), 0u);
}

// Rows of a cut are as large as chunks.
TEST_F(UnreadAnswersTest, RowsOfACutAreMadeWhenTheyAreRead) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  SendOnly(control, Fence(kTerm, kTerm, 0, "", /*hold=*/true));
  loop_->RunUntilIdle();
  control.received->messages.clear();
  control.received->reads = false;
  for (int i = 0; i < 2; ++i) {
    proto::ControlRequest request;
    request.set_term(kTerm);
    request.mutable_read_cut()->set_chunk(0);
    SendOnly(control, request);
  }
  EXPECT_TRUE(control.quiet());
  ASSERT_TRUE(control.received->ReadOne());
  EXPECT_EQ(control.Take<proto::ControlReply>().cut_rows().values().size(),
            shard_map_.ps(0).chunks[0].size * sizeof(float));
  SendOnly(control, Release(kTerm, 0));
  control.received->Read();
  EXPECT_TRUE(control.Take<proto::ControlReply>().cut_rows().values().empty())
      << "the cut is not kept any more";
}

}  // namespace
}  // namespace shoal
