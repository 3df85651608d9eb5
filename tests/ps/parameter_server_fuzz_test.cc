// Garbage, seeded: whatever comes over a stream, the ps lives on and its variables are not torn.
#include <random>

#include "common/base/term.h"
#include "common/base/version.h"
#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

class ParameterServerFuzzTest : public ParameterServerTest {
 protected:
  Message RandomBytes() {
    Message message;
    message.fields.resize(random_() % 40);
    for (char& byte : message.fields) byte = static_cast<char>(random_());
    AddPayload(&message);
    return message;
  }
  // A valid message with some bytes changed, cut off or repeated.
  Message Mutated(const google::protobuf::MessageLite& proto) {
    Message message = MakeMessage(proto);
    for (uint64_t i = random_() % 3; i > 0 && !message.fields.empty(); --i) {
      const size_t at = random_() % message.fields.size();
      switch (random_() % 3) {
        case 0:
          message.fields[at] = static_cast<char>(random_());
          break;
        case 1:
          message.fields.resize(at);
          break;
        case 2:
          message.fields.insert(at, message.fields.substr(at));
          break;
      }
    }
    AddPayload(&message);
    return message;
  }
  void AddPayload(Message* message) {
    for (uint64_t i = random_() % 3; i > 0; --i) {
      const size_t sizes[] = {0, 1, 3, 4, 64, 192};
      const auto bytes = std::make_shared<std::string>(sizes[random_() % 6], '\1');
      message->payload.push_back({bytes->data(), bytes->size(), bytes});
    }
  }
  uint64_t RandomNumber() {
    const uint64_t numbers[] = {0,     1,         2,          3,          63,
                                kTerm, kTerm + 1, UINT32_MAX, UINT64_MAX, random_()};
    return numbers[random_() % 10];
  }
  proto::ExchangeRequest RandomExchange() {
    proto::ExchangeRequest request;
    switch (random_() % 4) {
      case 0:
        request.mutable_hello()->set_version(kVersion);
        request.mutable_hello()->set_shard_map_fingerprint(random_() % 2);
        request.mutable_hello()->set_job_fingerprint(random_() % 4 == 0 ? 0 : job_fingerprint_);
        break;
      case 1:
        request.mutable_push()->set_timeline(server_->timeline());
        request.mutable_push()->set_step(RandomNumber());
        request.mutable_push()->set_chunk(RandomNumber());
        request.mutable_push()->set_pulled_version(RandomNumber());
        request.mutable_push()->set_want_values(random_() % 2);
        request.mutable_push()->set_skip(random_() % 4 == 0);
        if (random_() % 2 == 0) {
          request.mutable_push()->mutable_round()->set_first(RandomNumber());
          request.mutable_push()->mutable_round()->set_count(RandomNumber());
          request.mutable_push()->mutable_round()->set_number(RandomNumber());
        }
        break;
      default:
        request = Pull(random_() % 4 == 0 ? RandomNumber() : server_->timeline(), RandomNumber(),
                       RandomNumber(), random_() % 2 == 0 ? 0 : RandomNumber());
        if (random_() % 2 == 0) request.mutable_pull()->set_version(RandomNumber());
    }
    return request;
  }
  proto::ControlRequest RandomControl() {
    const uint64_t term = random_() % 2 == 0 ? server_->promised_term() : RandomNumber();
    switch (random_() % 8) {
      case 0:
        return Claim(term, RandomNumber());
      case 1:
        return Load(term, random_() % 2 == 0 ? job_.ResolvedText() : "{}",
                    random_() % 3 == 0 ? "/nowhere/checkpoints/step-1" : "", RandomNumber());
      case 2:
        return Fence(term, server_->timeline(), RandomNumber(), random_() % 2 ? "/nowhere" : "",
                     random_() % 2);
      case 3:
        return Release(term, RandomNumber());
      case 4: {
        proto::ControlRequest request;
        request.set_term(term);
        request.mutable_read_cut()->set_cut_step(RandomNumber());
        request.mutable_read_cut()->set_chunk(RandomNumber());
        request.mutable_read_cut()->set_part(RandomNumber());
        return request;
      }
      case 5: {
        proto::ControlRequest request;
        request.set_term(term);
        request.mutable_rows()->set_tensor(random_() % 2 == 0 ? "dense/kernel" : "x");
        request.mutable_rows()->set_offset_bytes(RandomNumber());
        request.mutable_rows()->mutable_values()->resize(random_() % 100);
        return request;
      }
      default:
        return Stop(term);
    }
  }

  std::mt19937_64 random_;
};

TEST_F(ParameterServerFuzzTest, GarbageNeverCrashes) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random_.seed(seed);
    Restart();
    Client control = ConnectControl();
    Job job = job_;
    if (seed % 2 == 1) {
      job.strategy.name = "sync";
      job.strategy.gradients_per_update = 3;
    }
    ASSERT_TRUE(Ask(control, Claim(kTerm)).has_claimed());
    ASSERT_TRUE(Ask(control, Load(kTerm, job.ResolvedText())).has_loaded());
    job_fingerprint_ = job.Fingerprint();
    for (int i = 0; i < 60; ++i) {
      const bool to_control = random_() % 2 == 0;
      Client client = to_control ? ConnectControl() : ConnectWorker();
      // Most commands need a claim of the stream.
      if (to_control && random_() % 4 != 0)
        client.callbacks.on_message(MakeMessage(Claim(server_->promised_term())));
      for (int m = 0; m < 3; ++m) {
        Message message = RandomBytes();
        if (random_() % 4 != 0) {
          message = to_control ? Mutated(RandomControl()) : Mutated(RandomExchange());
        }
        client.callbacks.on_message(std::move(message));
        if (random_() % 3 == 0) loop_->RunOneOffloaded();
      }
      if (random_() % 2 == 0) client.callbacks.on_closed(absl::UnavailableError("gone"));
    }
    loop_->RunUntilIdle();
    // It still does what it is for.
    const uint64_t term = std::max(server_->promised_term(), server_->timeline());
    ASSERT_LE(TermNumber(term), kMaxTermsAhead) << "the next coordinator has no term";
    Client next = ConnectControl();
    EXPECT_TRUE(Ask(next, Claim(term + 1)).has_claimed());
    ASSERT_EQ(Ask(next, Load(term + 1, job_.ResolvedText())).loaded().timeline(), term + 1);
    job_fingerprint_ = job_.Fingerprint();
    Client worker = ConnectWorker(shard_map_.Fingerprint());
    PushStep(worker, term + 1, 0);
    EXPECT_EQ(Ask(next, Claim(term + 1)).claimed().base(), 1u);
  }
}

}  // namespace
}  // namespace shoal
