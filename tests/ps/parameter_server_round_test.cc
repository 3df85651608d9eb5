// A ps whose job has synchronous rounds (docs/protocol.md, section 13).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/term.h"
#include "common/base/version.h"
#include "common/step_plan/round_message.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/metrics/sample_value.h"
#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSteps = 3;  // of a round

class ParameterServerRoundTest : public ParameterServerTest {
 protected:
  void LoadRounds(const Job::Compression& compression = {},
                  uint64_t training_examples = kExamples) {
    Job job = job_;
    job.strategy.name = "sync";
    job.strategy.gradients_per_update = kSteps;
    job.compression = compression;
    EXPECT_TRUE(Ask(control_, Claim(kTerm, training_examples)).has_claimed());
    const proto::ControlReply reply = Ask(control_, Load(kTerm, job.ResolvedText()));
    ASSERT_EQ(reply.loaded().timeline(), kTerm) << reply.DebugString();
    job_fingerprint_ = job.Fingerprint();
    worker_ = ConnectWorker();
  }
  uint32_t chunk_count() const { return static_cast<uint32_t>(shard_map_.ps(0).chunks.size()); }

  // Ones, in the round of the step.
  void SendPush(uint64_t step, uint32_t chunk, uint64_t round_first) {
    SendPush(step, chunk, {.first = round_first, .count = kSteps, .number = round_first / kSteps});
  }
  void SendPush(uint64_t step, uint32_t chunk, const Round& round) {
    proto::ExchangeRequest request;
    proto::Push* push = request.mutable_push();
    push->set_timeline(kTerm);
    push->set_step(step);
    push->set_chunk(chunk);
    push->set_pulled_version(round.first);
    SetRound(round, push);
    const auto ones =
        std::make_shared<std::vector<float>>(shard_map_.ps(0).chunks[chunk].size, 1.0f);
    worker_.callbacks.on_message(MakeMessage(request, {{reinterpret_cast<const char*>(ones->data()),
                                                        ones->size() * sizeof(float), ones}}));
  }
  proto::Applied PushInRound(uint64_t step, uint32_t chunk) {
    SendPush(step, chunk, step / kSteps * kSteps);
    return worker_.Take<proto::ExchangeReply>().applied();
  }
  void PushRound(uint64_t first) {
    for (uint64_t step = first; step < first + kSteps; ++step) {
      for (uint32_t k = 0; k < chunk_count(); ++k) EXPECT_FALSE(PushInRound(step, k).repeated());
    }
  }
  static proto::ExchangeRequest PullOf(uint64_t version, uint32_t first, uint32_t count) {
    proto::ExchangeRequest request = Pull(kTerm, first, count);
    request.mutable_pull()->set_version(version);
    return request;
  }
  std::vector<float> VersionOf(uint32_t chunk, uint64_t version) {
    const proto::ExchangeReply reply = Ask(worker_, PullOf(version, chunk, 1));
    EXPECT_EQ(reply.values().version(), version) << reply.DebugString();
    Message message;
    message.payload = worker_.payload;
    std::vector<float> values(message.payload_bytes() / sizeof(float));
    CopyPayload(message, 0, values.data(), values.size() * sizeof(float));
    return values;
  }
  void ExpectEnded(absl::StatusCode code, const std::string& why) {
    ASSERT_TRUE(worker_.received->finished.has_value());
    EXPECT_THAT(*worker_.received->finished, FailsWith(code, {why}));
    EXPECT_TRUE(worker_.quiet());
    worker_ = ConnectWorker();
  }

  Client control_ = ConnectControl();
  Client worker_;
};

TEST_F(ParameterServerRoundTest, APushIsAcknowledgedWhenItIsInAndAppliedWithItsRound) {
  LoadRounds();
  const std::vector<float> before = VersionOf(0, 0);
  for (const uint64_t step : {2, 0}) {
    const proto::Applied applied = PushInRound(step, 0);
    EXPECT_EQ(applied.step(), step);
    EXPECT_EQ(applied.version(), 0u);
    EXPECT_EQ(applied.staleness(), 0u);
  }
  EXPECT_TRUE(PushInRound(2, 0).repeated());
  EXPECT_EQ(Values(worker_, kTerm, 0), before);
  EXPECT_EQ(PushInRound(1, 0).version(), kSteps);
  std::vector<float> after = before;
  for (float& value : after) value -= 1;  // the mean of ones
  EXPECT_EQ(Values(worker_, kTerm, 0), after);
  EXPECT_TRUE(PushInRound(1, 0).repeated());
}

TEST_F(ParameterServerRoundTest, AVersionIsServedUntilTheNextRoundBegins) {
  LoadRounds();
  const std::vector<float> first = VersionOf(0, 0);
  PushRound(0);
  EXPECT_EQ(VersionOf(0, 0), first);
  EXPECT_NE(VersionOf(0, kSteps), first);
  PushInRound(kSteps, 0);
  const proto::ExchangeReply reply = Ask(worker_, PullOf(0, 0, 2));
  ASSERT_TRUE(reply.has_rejection()) << reply.DebugString();
  EXPECT_TRUE(reply.rejection().round_complete());
  EXPECT_EQ(reply.rejection().timeline(), kTerm);
  EXPECT_EQ(reply.rejection().requested_timeline(), kTerm);
  ASSERT_TRUE(reply.rejection().has_requested_version());
  EXPECT_EQ(reply.rejection().requested_version(), 0u);
  EXPECT_THAT(reply.rejection().reason(), HasSubstr("version 0 of chunk 0"));
  EXPECT_TRUE(worker_.quiet()) << "one answer to all of them";
  EXPECT_FALSE(worker_.received->finished.has_value());
  EXPECT_EQ(VersionOf(1, 0).size(), shard_map_.ps(0).chunks[1].size) << "its chunk has it still";
}

// The answer is made when it can be written.
TEST_F(ParameterServerRoundTest, AVersionDroppedBeforeTheAnswerIsMadeIsRejected) {
  LoadRounds();
  PushRound(0);
  Client slow = ConnectWorker();
  slow.received->reads = false;
  slow.callbacks.on_message(MakeMessage(PullOf(0, 0, 1)));
  PushInRound(kSteps, 0);
  slow.received->Read();
  EXPECT_TRUE(slow.Take<proto::ExchangeReply>().rejection().round_complete());
}

TEST_F(ParameterServerRoundTest, ARejectionOfAnotherTimelineNamesNoRound) {
  LoadRounds();
  proto::ExchangeRequest request = PullOf(0, 0, 1);
  request.mutable_pull()->set_timeline(kTerm + 1);
  const proto::ExchangeReply reply = Ask(worker_, request);
  ASSERT_TRUE(reply.has_rejection());
  EXPECT_FALSE(reply.rejection().round_complete());
  EXPECT_EQ(reply.rejection().requested_version(), 0u);
}

// With the code that has a worker drop its leases, as of a step beyond the window: it was told that
// the rounds before are complete, by somebody who lied.
TEST_F(ParameterServerRoundTest, ALaterRoundEndsTheStream) {
  LoadRounds();
  SendPush(kSteps, 0, kSteps);
  ExpectEnded(absl::StatusCode::kOutOfRange, "chunk 0 of step 3: ");
  worker_.callbacks.on_message(MakeMessage(PullOf(kSteps, 0, 1)));
  ExpectEnded(absl::StatusCode::kOutOfRange, "version 3");
  PushRound(0);
  // Some have it, others do not.
  for (uint64_t step = kSteps; step < 2 * kSteps; ++step) PushInRound(step, 0);
  worker_.callbacks.on_message(MakeMessage(PullOf(2 * kSteps, 0, chunk_count())));
  ExpectEnded(absl::StatusCode::kOutOfRange, "version 6");
}

TEST_F(ParameterServerRoundTest, ARoundOutsideThePlanEndsTheStream) {
  LoadRounds();
  const std::vector<float> before = VersionOf(0, 0);
  for (const Round& round :
       {Round{.first = 0, .count = 1, .number = 0}, Round{.first = 0, .count = 2, .number = 0},
        Round{.first = 0, .count = kSteps, .number = 1}}) {
    SendPush(0, 0, round);
    ExpectEnded(absl::StatusCode::kInvalidArgument, "chunk 0 of step 0");
  }
  EXPECT_EQ(VersionOf(0, 0), before);
  PushRound(0);
  EXPECT_EQ(Ask(control_, Claim(kTerm)).claimed().highest_updates(), kSteps);
}

// An epoch of 4 steps has a round of 3 and one of 1.
TEST_F(ParameterServerRoundTest, TheExamplesSayWhereRoundsEnd) {
  LoadRounds({}, /*training_examples=*/4 * 32);
  PushRound(0);
  SendPush(3, 0, {.first = 3, .count = kSteps, .number = 1});
  ExpectEnded(absl::StatusCode::kInvalidArgument, "chunk 0 of step 3");
  SendPush(3, 0, {.first = 3, .count = 1, .number = 1});
  EXPECT_EQ(worker_.Take<proto::ExchangeReply>().applied().version(), 4u);
}

TEST_F(ParameterServerRoundTest, APushBeforeThePlanIsKnownEndsTheStream) {
  LoadRounds({}, /*training_examples=*/0);
  SendPush(0, 0, 0);
  ExpectEnded(absl::StatusCode::kUnavailable, "chunk 0 of step 0");
  EXPECT_EQ(Ask(control_, Claim(kTerm, 0)).claimed().training_examples(), 0u);
  EXPECT_EQ(Ask(control_, Claim(kTerm)).claimed().training_examples(), kExamples);
  EXPECT_EQ(PushInRound(0, 0).step(), 0u);
}

TEST_F(ParameterServerRoundTest, ATimelineKeepsThePlanThatItBeganWith) {
  LoadRounds();
  for (const uint64_t told : {uint64_t{0}, kExamples / 2})
    EXPECT_EQ(Ask(control_, Claim(kTerm, told)).claimed().training_examples(), kExamples);
  PushRound(0);
}

TEST_F(ParameterServerRoundTest, APushWithoutARoundEndsTheStream) {
  LoadRounds();
  PushInRound(0, 0);
  proto::ExchangeRequest request;
  request.mutable_push()->set_timeline(kTerm);
  request.mutable_push()->set_step(1);
  const auto ones = std::make_shared<std::vector<float>>(shard_map_.ps(0).chunks[0].size, 1.0f);
  worker_.callbacks.on_message(MakeMessage(request, {{reinterpret_cast<const char*>(ones->data()),
                                                      ones->size() * sizeof(float), ones}}));
  ExpectEnded(absl::StatusCode::kInvalidArgument, "chunk 0 of step ");
  EXPECT_EQ(PushInRound(1, 0).version(), 0u) << "nothing has changed";
  EXPECT_EQ(PushInRound(2, 0).version(), kSteps);
}

TEST_F(ParameterServerRoundTest, AClaimTellsTheStepsThatAreIn) {
  LoadRounds();
  PushRound(0);
  for (const uint64_t step : {kSteps, kSteps + 2}) {
    for (uint32_t k = 0; k < chunk_count(); ++k) PushInRound(step, k);
  }
  const proto::Claimed claimed = Ask(control_, Claim(kTerm)).claimed();
  EXPECT_EQ(claimed.base(), kSteps + 1);
  EXPECT_THAT(claimed.applied_after_base(), testing::ElementsAre(kSteps + 2));
  EXPECT_EQ(claimed.lowest_updates(), kSteps);
  EXPECT_EQ(claimed.highest_updates(), kSteps);
}

TEST_F(ParameterServerRoundTest, ACutHasTheRoundsBelowItAndNothingThatIsHeld) {
  LoadRounds();
  PushRound(0);
  for (uint32_t k = 0; k < chunk_count(); ++k) PushInRound(kSteps, k);
  const std::vector<float> values = VersionOf(0, kSteps);
  Ask(control_, Fence(kTerm, kTerm, kSteps, "", /*hold=*/true));
  EXPECT_TRUE(control_.Take<proto::ControlReply>().has_cut_ready()) << "at once";
  for (const uint64_t step : {kSteps + 1, kSteps + 2}) {
    for (uint32_t k = 0; k < chunk_count(); ++k) PushInRound(step, k);
  }
  EXPECT_NE(Values(worker_, kTerm, 0), values);
  EXPECT_EQ(Values(worker_, kTerm, 0, kSteps), values);
  ClaimWith(control_, kTerm + 1);
  const proto::ControlReply late = Ask(control_, Fence(kTerm + 1, kTerm, kSteps));
  EXPECT_EQ(late.fence_rejected().highest_step(), 2 * kSteps - 1) << late.DebugString();
}

TEST_F(ParameterServerRoundTest, TheVersionBeforeTravelsAsAllValuesDo) {
  LoadRounds({.push = "", .pull = "\"bf16\""});
  worker_ = Connect(kExchangeMethod);
  proto::ExchangeRequest hello;
  hello.mutable_hello()->set_version(kVersion);
  hello.mutable_hello()->set_pull_codec("\"bf16\"");
  hello.mutable_hello()->set_job_fingerprint(job_fingerprint_);
  worker_.callbacks.on_message(MakeMessage(hello));
  PushRound(0);
  for (const uint64_t version : {uint64_t{0}, kSteps}) {
    Ask(worker_, PullOf(version, 0, 1));
    Message message;
    message.payload = worker_.payload;
    EXPECT_EQ(message.payload_bytes(), shard_map_.ps(0).chunks[0].size * 2u);
  }
}

TEST_F(ParameterServerRoundTest, CountsEarlyGradientsAndKeptVersions) {
  LoadRounds();
  const auto value = [this](MetricName metric) { return SampleValue(*server_, metric, {}); };
  PushInRound(2, 0);
  PushInRound(1, 0);
  EXPECT_EQ(value("shoal_ps_early_gradients"), 2);
  EXPECT_EQ(value("shoal_ps_versions_before"), 0);
  PushInRound(0, 0);
  EXPECT_EQ(value("shoal_ps_early_gradients"), 0);
  EXPECT_EQ(value("shoal_ps_versions_before"), 1);
}

}  // namespace
}  // namespace shoal
