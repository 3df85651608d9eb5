// The streams of workers: rules 4 and 5 of the protocol.
#include "ps/services/exchange_service.h"

#include <gmock/gmock.h>

#include "common/base/crc32c.h"
#include "common/base/version.h"
#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

using testing::HasSubstr;

class ExchangeServiceTest : public ParameterServerTest {};

TEST_F(ExchangeServiceTest, AWorkerOfOtherShardsIsRejected) {
  Client control = ConnectControl();
  const uint32_t fingerprint = shard_map_.Fingerprint();
  Client early = ConnectWorker(fingerprint ^ 1);  // before anybody knows the job
  LoadJob(control, kTerm);
  Client right = ConnectWorker(fingerprint);
  EXPECT_TRUE(Ask(right, Pull(kTerm, 0, 1)).has_values());
  Client wrong = ConnectWorker(fingerprint ^ 1);
  EXPECT_TRUE(Ask(wrong, Pull(kTerm - 1, 0, 1)).has_rejection()) << "of another timeline, perhaps";
  EXPECT_FALSE(wrong.received->finished.has_value());
  wrong.callbacks.on_message(MakeMessage(Pull(kTerm, 0, 1)));
  ASSERT_TRUE(wrong.received->finished.has_value());
  EXPECT_EQ(wrong.received->finished->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(early.received->finished.has_value());
  early.callbacks.on_message(MakeMessage(Pull(kTerm, 0, 1)));
  ASSERT_TRUE(early.received->finished.has_value());
  EXPECT_EQ(early.received->finished->code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ExchangeServiceTest, AnIndexThatIsNotOfTheCertificateIsRejected) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  for (const int own : {0, 3}) {
    Client worker = Connect(kExchangeMethod);
    worker.received->own_index = own;
    proto::ExchangeRequest hello;
    hello.mutable_hello()->set_version(kVersion);
    hello.mutable_hello()->set_worker(3);
    hello.mutable_hello()->set_job_fingerprint(job_.Fingerprint());
    worker.callbacks.on_message(MakeMessage(hello));
    EXPECT_EQ(worker.received->finished.has_value(), own != 3);
    if (own == 3) continue;
    EXPECT_EQ(worker.received->finished->code(), absl::StatusCode::kPermissionDenied);
    worker.callbacks.on_message(MakeMessage(Pull(kTerm, 0, 1)));
    EXPECT_TRUE(worker.quiet()) << "nothing is served after the end";
  }
}

// Its variables and shards are the same; its seed, loss, data or epochs differ.
TEST_F(ExchangeServiceTest, AWorkerOfAnotherJobIsRejected) {
  Client control = ConnectControl();
  job_fingerprint_ = job_.Fingerprint() ^ 1;
  Client early = ConnectWorker();  // before anybody knows the job
  LoadJob(control, kTerm);
  Client late = ConnectWorker();
  job_fingerprint_ = 0;
  Client silent = ConnectWorker();
  for (Client* wrong : {&early, &late, &silent}) {
    EXPECT_TRUE(Ask(*wrong, Pull(kTerm - 1, 0, 1)).has_rejection()) << "of another timeline";
    EXPECT_FALSE(wrong->received->finished.has_value());
    wrong->callbacks.on_message(MakeMessage(Pull(kTerm, 0, 1)));
    ASSERT_TRUE(wrong->received->finished.has_value());
    EXPECT_EQ(wrong->received->finished->code(), absl::StatusCode::kAborted);
    EXPECT_THAT(std::string(wrong->received->finished->message()),
                HasSubstr(ChecksumText(job_.Fingerprint())));
  }
  job_fingerprint_ = job_.Fingerprint() ^ 1;
  Client pushing = ConnectWorker();
  proto::ExchangeRequest push;
  push.mutable_push()->set_timeline(kTerm);
  pushing.callbacks.on_message(MakeMessage(push));
  ASSERT_TRUE(pushing.received->finished.has_value());
  EXPECT_EQ(pushing.received->finished->code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Ask(control, Claim(kTerm)).claimed().highest_updates(), 0u);
  job_fingerprint_ = job_.Fingerprint();
  Client right = ConnectWorker();
  EXPECT_TRUE(Ask(right, Pull(kTerm, 0, 1)).has_values());
}

TEST_F(ExchangeServiceTest, AnythingBeforeTheHelloEndsTheStream) {
  Client worker = Connect(kExchangeMethod);
  worker.callbacks.on_message(MakeMessage(Pull(kTerm, 0, 1)));
  ASSERT_TRUE(worker.received->finished.has_value());
  EXPECT_EQ(worker.received->finished->code(), absl::StatusCode::kInvalidArgument);
  // Later messages are dropped.
  worker.callbacks.on_message(MakeMessage(Pull(kTerm, 0, 1)));
  EXPECT_TRUE(worker.quiet());
}

// Rule 4.
TEST_F(ExchangeServiceTest, OtherTimelinesAreRejectedAndChangeNothing) {
  Client control = ConnectControl();
  Client worker = ConnectWorker();
  EXPECT_EQ(Ask(worker, Pull(0, 0, 1)).rejection().timeline(), 0u) << "0 is no timeline";
  LoadJob(control, kTerm);
  const std::vector<float> values = Values(worker, kTerm, 0);
  for (const uint64_t timeline : {uint64_t{0}, kTerm - 1, kTerm + 1}) {
    EXPECT_EQ(Push(worker, timeline, 0, 0).rejection().timeline(), kTerm);
    const proto::ExchangeReply reply = Ask(worker, Pull(timeline, 0, 1, 7));
    EXPECT_EQ(reply.rejection().timeline(), kTerm);
    EXPECT_EQ(reply.rejection().requested_timeline(), timeline) << "what was asked for";
    EXPECT_EQ(reply.rejection().requested_cut_step(), 7u);
    EXPECT_THAT(reply.rejection().reason(), HasSubstr("is in timeline"));
  }
  EXPECT_EQ(Values(worker, kTerm, 0), values);
  EXPECT_EQ(Ask(control, Claim(kTerm)).claimed().applied_chunks(), 0u);
}

// Rule 5.
TEST_F(ExchangeServiceTest, PushIsAppliedOnceAndBringsFreshValues) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker(shard_map_.Fingerprint());
  Client other = ConnectWorker(shard_map_.Fingerprint());
  const std::vector<float> before = Values(worker, kTerm, 1);
  proto::ExchangeReply reply = Push(worker, kTerm, 4, 1, /*want_values=*/true);
  EXPECT_EQ(reply.applied().timeline(), kTerm);
  EXPECT_EQ(reply.applied().step(), 4u);
  EXPECT_EQ(reply.applied().chunk(), 1u);
  EXPECT_EQ(reply.applied().version(), 1u);
  EXPECT_FALSE(reply.applied().repeated());
  std::vector<float> fresh(before.size());
  Message message;
  message.payload = worker.payload;
  ASSERT_EQ(message.payload_bytes(), before.size() * sizeof(float));
  CopyPayload(message, 0, fresh.data(), message.payload_bytes());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_FLOAT_EQ(fresh[i], before[i] - 1);

  reply = Push(other, kTerm, 4, 1, /*want_values=*/true);
  EXPECT_TRUE(reply.applied().repeated());
  EXPECT_EQ(reply.applied().version(), 1u);
  EXPECT_FALSE(other.payload.empty());
  reply = Push(other, kTerm, 5, 1);
  EXPECT_EQ(reply.applied().staleness(), 1u);
  EXPECT_TRUE(other.payload.empty());
}

// Rule 5 for a step whose gradient overflowed: it counts once, and a worker may request the values.
TEST_F(ExchangeServiceTest, ASkippedStepIsAcknowledgedAndChangesNoValue) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker(shard_map_.Fingerprint());
  const std::vector<float> before = Values(worker, kTerm, 1);
  proto::ExchangeReply reply = PushSkip(worker, kTerm, 0, 1, /*want_values=*/true);
  EXPECT_EQ(reply.applied().step(), 0u);
  EXPECT_EQ(reply.applied().chunk(), 1u);
  EXPECT_EQ(reply.applied().version(), 1u);
  EXPECT_FALSE(reply.applied().repeated());
  Message message;
  message.payload = worker.payload;
  EXPECT_EQ(message.payload_bytes(), before.size() * sizeof(float));
  EXPECT_EQ(Values(worker, kTerm, 1), before);
  EXPECT_TRUE(Push(worker, kTerm, 0, 1).applied().repeated()) << "who computes it again is late";
  EXPECT_EQ(Values(worker, kTerm, 1), before);
  for (const uint32_t chunk : {0, 2, 3}) PushSkip(worker, kTerm, 0, chunk);
  EXPECT_EQ(Ask(control, Claim(kTerm)).claimed().base(), 1u);
  EXPECT_TRUE(PushSkip(worker, kTerm - 1, 1, 1).has_rejection());
  // It has neither a gradient nor a round.
  for (const bool of_round : {false, true}) {
    proto::ExchangeRequest request;
    request.mutable_push()->set_timeline(kTerm);
    request.mutable_push()->set_step(1);
    request.mutable_push()->set_skip(true);
    if (of_round) request.mutable_push()->mutable_round()->set_count(1);
    const float one = 1;
    Client wrong = ConnectWorker(shard_map_.Fingerprint());
    std::vector<Slice> payload;
    if (!of_round) payload.push_back({reinterpret_cast<const char*>(&one), sizeof(one)});
    wrong.callbacks.on_message(MakeMessage(request, std::move(payload)));
    ASSERT_TRUE(wrong.received->finished.has_value());
    EXPECT_EQ(wrong.received->finished->code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        wrong.received->finished->message(),
        HasSubstr(of_round ? "chunk 0 of step 1: a skipped step was pushed with a round"
                           : "chunk 0 of step 1: a skipped step was pushed with a gradient"));
  }
}

TEST_F(ExchangeServiceTest, TheJobMayDivideTheLearningRateByTheStaleness) {
  Client control = ConnectControl();
  for (const bool tells : {false, true}) {
    Job job = job_;
    job.strategy.learning_rate_by_staleness = tells;
    const uint64_t term = kTerm + (tells ? 1 : 0);
    ASSERT_TRUE(Ask(control, Claim(term)).has_claimed());
    ASSERT_EQ(Ask(control, Load(term, job.ResolvedText())).loaded().timeline(), term);
    job_fingerprint_ = job.Fingerprint();
    Client worker = ConnectWorker();
    const float before = Values(worker, term, 0)[0];
    for (uint64_t step = 0; step < 3; ++step) {
      EXPECT_EQ(Push(worker, term, step, 0).applied().staleness(), step);
    }
    EXPECT_FLOAT_EQ(Values(worker, term, 0)[0], before - (tells ? 2.5f : 3));
  }
}

// Otherwise a chunk would have a step above the last cut, which could then never start.
TEST_F(ExchangeServiceTest, AStepBeyondTheJobEndsTheStream) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker();
  for (uint64_t step = 0; step < job_.steps - 1; ++step) PushStep(worker, kTerm, step);
  Client liar = ConnectWorker();
  proto::ExchangeRequest request;
  request.mutable_push()->set_timeline(kTerm);
  request.mutable_push()->set_step(job_.steps);
  request.mutable_push()->set_skip(true);
  liar.callbacks.on_message(MakeMessage(request));
  ASSERT_TRUE(liar.received->finished.has_value());
  EXPECT_EQ(liar.received->finished->code(), absl::StatusCode::kInvalidArgument);
  PushStep(worker, kTerm, job_.steps - 1);
  EXPECT_TRUE(Ask(control, Fence(kTerm, kTerm, job_.steps)).has_fence_accepted());
}

TEST_F(ExchangeServiceTest, ProtocolErrorsEndTheStreamOnly) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client good = ConnectWorker();
  const std::vector<float> values = Values(good, kTerm, 0);
  const uint32_t chunks = shard_map_.ps(0).chunks.size();
  const auto ended = [&](const proto::ExchangeRequest& request) {
    Client worker = ConnectWorker();
    worker.callbacks.on_message(MakeMessage(request));
    EXPECT_TRUE(worker.quiet());
    return worker.received->finished.value_or(absl::OkStatus()).code();
  };
  proto::ExchangeRequest push;
  push.mutable_push()->set_timeline(kTerm);
  EXPECT_EQ(ended(push), absl::StatusCode::kInvalidArgument) << "no gradient";
  push.mutable_push()->set_chunk(UINT32_MAX);
  EXPECT_EQ(ended(push), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ended(Pull(kTerm, 0, chunks + 1)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ended(Pull(kTerm, UINT32_MAX, UINT32_MAX)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ended({}), absl::StatusCode::kInvalidArgument) << "no kind";

  Client unreadable = ConnectWorker();
  unreadable.callbacks.on_message({.fields = "\xff", .payload = {}});
  ASSERT_TRUE(unreadable.received->finished.has_value());
  EXPECT_EQ(unreadable.received->finished->code(), absl::StatusCode::kInvalidArgument);

  Client window = ConnectWorker();
  proto::ExchangeRequest far;
  far.mutable_push()->set_timeline(kTerm);
  far.mutable_push()->set_step(64);
  const std::vector<float> ones(shard_map_.ps(0).chunks[0].size, 1);
  window.callbacks.on_message(MakeMessage(
      far, {{reinterpret_cast<const char*>(ones.data()), ones.size() * sizeof(float), nullptr}}));
  EXPECT_EQ(window.received->finished->code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Values(good, kTerm, 0), values);
}

TEST_F(ExchangeServiceTest, PullOfAllChunks) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker();
  const uint32_t chunks = shard_map_.ps(0).chunks.size();
  ASSERT_GE(chunks, 3u);
  worker.callbacks.on_message(MakeMessage(Pull(kTerm, 0, chunks)));
  for (uint32_t k = 0; k < chunks; ++k) {
    const proto::ChunkValues values = worker.Take<proto::ExchangeReply>().values();
    EXPECT_EQ(values.chunk(), k);
    EXPECT_EQ(values.timeline(), kTerm);
    EXPECT_EQ(values.version(), 0u);
    ASSERT_EQ(worker.payload.size(), 1u);
    EXPECT_EQ(worker.payload[0].size, shard_map_.ps(0).chunks[k].size * sizeof(float));
  }
  worker.callbacks.on_message(MakeMessage(Pull(kTerm, chunks, 0)));
  EXPECT_TRUE(worker.quiet());
  EXPECT_FALSE(worker.received->finished.has_value());
}

}  // namespace
}  // namespace shoal
