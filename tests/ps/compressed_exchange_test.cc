// A ps whose job compresses what travels: only the messages change, not what is applied.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/version.h"
#include "common/compression/chunk_payload.h"
#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CompressedExchangeTest : public ParameterServerTest {
 protected:
  void Load(const std::string& push, const std::string& pull) {
    Job job = job_;
    job.compression = {.push = push, .pull = pull};
    push_ = push;
    pull_ = pull;
    control_ = ConnectControl();
    EXPECT_TRUE(Ask(control_, Claim(kTerm)).has_claimed());
    const proto::ControlReply reply =
        Ask(control_, ParameterServerTest::Load(kTerm, job.ResolvedText()));
    ASSERT_EQ(reply.loaded().timeline(), kTerm) << reply.DebugString();
    job_fingerprint_ = job.Fingerprint();
  }

  // A worker that introduces itself with these codecs.
  Client Worker(const std::string& push, const std::string& pull) {
    Client worker = Connect(kExchangeMethod);
    proto::ExchangeRequest request;
    request.mutable_hello()->set_version(kVersion);
    request.mutable_hello()->set_shard_map_fingerprint(shard_map_.Fingerprint());
    request.mutable_hello()->set_job_fingerprint(job_fingerprint_);
    request.mutable_hello()->set_push_codec(push);
    request.mutable_hello()->set_pull_codec(pull);
    worker.callbacks.on_message(MakeMessage(request));
    return worker;
  }

  const Chunk& chunk(int k) const { return shard_map_.ps(0).chunks[k]; }

  static proto::ExchangeRequest PushOf(uint64_t step, uint32_t k, bool want_values) {
    proto::ExchangeRequest request;
    request.mutable_push()->set_timeline(kTerm);
    request.mutable_push()->set_step(step);
    request.mutable_push()->set_chunk(k);
    request.mutable_push()->set_want_values(want_values);
    return request;
  }
  Slice Encoded(const std::vector<float>& gradient, int k) const {
    return EncodeChunk(**MakeCodec(push_, Direction::kPush), chunk(k),
                       [&](const ChunkPiece& piece) {
                         return std::span(gradient).subspan(piece.chunk_offset, piece.size);
                       });
  }
  // The payload of the last answer.
  std::vector<float> Decoded(const Client& worker, int k) const {
    std::vector<float> values(chunk(k).size);
    const absl::Status status =
        DecodeChunk(**MakeCodec(pull_, Direction::kPull), chunk(k),
                    Message{.payload = worker.payload}, [&](const ChunkPiece& piece) {
                      return std::span(values).subspan(piece.chunk_offset, piece.size);
                    });
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }
  std::vector<float> Stored(int k) const {
    const std::span<const float> values = server_->variables()->chunk(k).values();
    return {values.begin(), values.end()};
  }

  Client control_;
  std::string push_, pull_;
};

TEST_F(CompressedExchangeTest, ThePsAppliesTheEncodedGradient) {
  Load("int8", "bf16");
  Client worker = Worker("int8", "bf16");
  const std::vector<float> before = Stored(1);
  const std::vector<float> gradient(chunk(1).size, -0.5f);  // exact in int8
  const proto::ExchangeReply reply = Ask(worker, PushOf(0, 1, true), {Encoded(gradient, 1)});
  ASSERT_TRUE(reply.has_applied()) << reply.DebugString();
  EXPECT_FALSE(reply.applied().repeated());
  const std::vector<float> after = Stored(1);
  const std::vector<float> answer = Decoded(worker, 1);
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_NEAR(after[i], before[i] + 0.5f, 1e-6) << "the learning rate is 1";
    EXPECT_NEAR(answer[i], after[i], std::abs(after[i]) / 256);
    EXPECT_NE(after[i], answer[i]) << "the master copy is float32";
  }
}

TEST_F(CompressedExchangeTest, APushThatComesTwiceIsAppliedOnce) {
  Load("e3m0", "");
  Client worker = Worker("e3m0", "");
  const Slice payload = Encoded(std::vector<float>(chunk(0).size, 0.25f), 0);
  Ask(worker, PushOf(0, 0, false), {payload});
  const std::vector<float> once = Stored(0);
  const proto::ExchangeReply again = Ask(worker, PushOf(0, 0, true), {payload});
  EXPECT_TRUE(again.applied().repeated());
  EXPECT_EQ(Stored(0), once);
  Message message;
  message.payload = worker.payload;
  EXPECT_EQ(message.payload_bytes(), chunk(0).size * sizeof(float)) << "pulled as float32";
}

TEST_F(CompressedExchangeTest, ALivePullIsCompressedAndACutIsNot) {
  Load("", "int8");
  Client worker = Worker("", "int8");
  ASSERT_TRUE(Ask(worker, Pull(kTerm, 0, 1)).has_values());
  const std::vector<float> live = Decoded(worker, 0);
  const std::vector<float> stored = Stored(0);
  double largest = 0;
  for (const float value : stored) largest = std::max(largest, std::abs(double{value}));
  for (size_t i = 0; i < live.size(); ++i) EXPECT_NEAR(live[i], stored[i], largest / 253);

  PushStep(worker, kTerm, 0);
  EXPECT_TRUE(Ask(control_, Fence(kTerm, kTerm, 1, "", true)).has_fence_accepted());
  EXPECT_EQ(Values(worker, kTerm, 0, 1), Stored(0));
}

TEST_F(CompressedExchangeTest, AWorkerWithOtherCodecsIsRejectedByName) {
  Load("int8", "bf16");
  struct Peer {
    const char *push, *pull, *message;
  };
  for (const Peer& peer : {Peer{"", "", "pushes float32 and pulls float32"},
                           Peer{"int8", "int8", "pushes int8 and pulls int8"},
                           Peer{"int2", "bf16", "pushes int2 and pulls bf16"}}) {
    Client worker = Worker(peer.push, peer.pull);
    worker.callbacks.on_message(MakeMessage(Pull(kTerm, 0, 1)));
    EXPECT_TRUE(worker.received->finished.has_value());
    EXPECT_EQ(worker.received->finished->code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(worker.received->finished->message()),
                AllOf(HasSubstr(peer.message), HasSubstr("int8"), HasSubstr("bf16")));
  }
}

TEST_F(CompressedExchangeTest, AWrongEncodingIsRejectedAndChangesNothing) {
  Load("int8", "");
  const std::vector<float> before = Stored(0);
  std::string damaged(Encoded(std::vector<float>(chunk(0).size, 1.0f), 0).size, '\xff');
  std::string float32(chunk(0).size * sizeof(float), '\0');
  for (const std::string& payload : {damaged, float32, std::string()}) {
    Client worker = Worker("int8", "");
    worker.callbacks.on_message(
        MakeMessage(PushOf(0, 0, false), {{payload.data(), payload.size(), nullptr}}));
    ASSERT_TRUE(worker.received->finished.has_value());
    EXPECT_EQ(worker.received->finished->code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(worker.received->finished->message()),
                HasSubstr("chunk 0 of step 0: "));
    EXPECT_EQ(Stored(0), before);
  }
  EXPECT_EQ(server_->variables()->counters().applied, 0u);
}

// A ps of a build that lacks the codec says so before anything is trained.
TEST_F(CompressedExchangeTest, AJobWithACodecThatThisPsLacksIsNotLoaded) {
  Client control = ConnectControl();
  EXPECT_TRUE(Ask(control, Claim(kTerm)).has_claimed());
  Job job = job_;
  job.compression.push = "int2";
  const proto::ControlReply reply =
      Ask(control, ParameterServerTest::Load(kTerm, job.ResolvedText()));
  EXPECT_THAT(reply.load_failed().reason(),
              AllOf(HasSubstr("$.compression.push: "), HasSubstr("\"int2\"")));
}

}  // namespace
}  // namespace shoal
