// What clients that are not ours, or mean no good, get from a GrpcNetwork: plain gRPC, and bytes
// that are no gRPC at all.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/grpc/grpc_network.h"
#include "common/rpc/shared/shared_payloads.h"
#include "proto/cluster.pb.h"
#include "tests/common/rpc/network_fixture.h"
#include "tests/fakes/test_seed.h"

namespace shoal {
namespace {

constexpr int kMaxMessageBytes = 1 << 20;

// One call of a client that knows only gRPC; every operation waits for its end.
class ForeignCall {
 public:
  ForeignCall(const std::string& address, const std::string& method,
              grpc_compression_algorithm compression = GRPC_COMPRESS_NONE,
              const std::string& offer = "")
      : stub_(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), Arguments())) {
    context_.set_compression_algorithm(compression);
    if (!offer.empty()) context_.AddMetadata(kSharedPayloadsKey, offer);
    context_.set_deadline(std::chrono::system_clock::now() + kTestDeadline);
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(this);
    Next();
  }
  ~ForeignCall() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  bool Write(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    call_->Write(grpc::ByteBuffer(&slice, 1), this);
    return Next();
  }
  void WritesDone() {
    call_->WritesDone(this);
    Next();
  }
  // Nothing at the end of the stream.
  std::optional<std::string> Read() {
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, this);
    if (!Next()) return std::nullopt;
    grpc::Slice slice;
    EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
    return std::string(slice.begin(), slice.end());
  }
  // After a Read.
  bool offer_taken() const {
    return context_.GetServerInitialMetadata().contains(kSharedPayloadsKey);
  }
  grpc::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, this);
    Next();
    return status;
  }

 private:
  // Takes no more of what is not read than HTTP/2 begins with: gRPC would double that by how fast
  // the first of it came.
  static grpc::ChannelArguments Arguments() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    return arguments;
  }
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue_.Next(&tag, &ok));
    return ok;
  }

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

class Transport {
 public:
  explicit Transport(TransportLimits) {}
  std::unique_ptr<TestNode> CreateNode() {
    return std::make_unique<TestNode>(GrpcNetwork::Create({.max_message_bytes = kMaxMessageBytes,
                                                           .max_streams = 8,
                                                           .max_streams_per_client = 16,
                                                           .max_shared_streams = 2}),
                                      [](GrpcNetwork* network) { network->Run(Time::zero()); });
  }
  static std::string ListenAddress() { return "127.0.0.1:0"; }
};

class ForeignClientTest : public NetworkConformance<Transport> {
 protected:
  void SetUp() override { Start(); }
};

TEST_F(ForeignClientTest, HealthServiceSaysServing) {
  const std::string serving("\x08\x01");
  ForeignCall check(address_, "/grpc.health.v1.Health/Check");
  check.Write("");
  check.WritesDone();
  EXPECT_EQ(check.Read(), serving);
  EXPECT_TRUE(check.Finish().ok());

  ForeignCall watch(address_, "/grpc.health.v1.Health/Watch");
  watch.Write("");
  EXPECT_EQ(watch.Read(), serving);

  ForeignCall unknown(address_, "/grpc.health.v1.Health/Check");
  unknown.Write(
      "\x0a\x03"
      "abc");
  unknown.WritesDone();
  EXPECT_EQ(unknown.Read(), std::nullopt);
  EXPECT_EQ(unknown.Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  ExpectWorks(0);
}

TEST_F(ForeignClientTest, UnaryCallIsAStreamOfOneMessageEachWay) {
  StopServer();
  std::shared_ptr<Stream> serving;
  StartServer(Transport::ListenAddress(),
              [&](const std::string& method, std::unique_ptr<Stream> stream) {
                EXPECT_EQ(method, kStatusMethod);
                serving = std::move(stream);
                return StreamCallbacks{.on_message =
                                           [&](Message message) {
                                             proto::StatusRequest request;
                                             EXPECT_TRUE(ParseMessage(message, &request));
                                             proto::StatusReply reply;
                                             reply.set_job_name("asked by " + request.version());
                                             reply.set_examples_per_second(0.5);
                                             serving->Send(MakeMessage(reply));
                                             serving->Finish(absl::OkStatus());
                                           },
                                       .on_closed = [&](absl::Status) { serving.reset(); }};
              });
  proto::StatusRequest request;
  request.set_version("0.1.0");
  ForeignCall call(address_, kStatusMethod);
  call.Write(request.SerializeAsString());
  call.WritesDone();
  proto::StatusReply reply;
  ASSERT_TRUE(reply.ParseFromString(call.Read().value_or("")));
  EXPECT_EQ(reply.job_name(), "asked by 0.1.0");
  EXPECT_EQ(reply.examples_per_second(), 0.5);
  EXPECT_EQ(call.Read(), std::nullopt);
  EXPECT_TRUE(call.Finish().ok());
  StopServer();
}

TEST_F(ForeignClientTest, MalformedMessageEndsOnlyItsStream) {
  StreamLog& other_log = NewLog();
  Stream* const other = Open(&other_log);
  const auto other_accepted = WaitForAccepted(0);

  ForeignCall call(address_, kExchangeMethod);
  // Payload that is not last.
  call.Write(std::string("\x7a\x01p\x08\x01", 5));
  call.Write(NumberedMessage(1).fields);
  EXPECT_EQ(call.Read(), std::nullopt);
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const auto accepted = WaitForAccepted(1);
  EXPECT_EQ(accepted->log.WaitForClose().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(accepted->log.entries().empty());

  client_->OnLoop([&] { other->Send(NumberedMessage(7)); });
  EXPECT_EQ(other_accepted->log.WaitForMessages(1).at(0).number, 7u);
}

TEST_F(ForeignClientTest, OnlyAnOfferOfExistingMemoryIsAccepted) {
  const auto memory = SharedPayloads::Create();
  size_t index = 0;
  const std::vector<std::pair<std::string, bool>> offers = {{"", false},
                                                            {"1/2/3", false},
                                                            {"nonsense", false},
                                                            {memory->offer() + "0", false},
                                                            {memory->offer(), true}};
  for (const auto& [offer, taken] : offers) {
    ForeignCall call(address_, kExchangeMethod, GRPC_COMPRESS_NONE, offer);
    const auto accepted = WaitForAccepted(index++);
    server_->OnLoop([&] { accepted->stream->Send(NumberedMessage(5)); });
    EXPECT_TRUE(call.Read().has_value());
    EXPECT_EQ(call.offer_taken(), taken) << offer;
    // With the payload in the message as ever.
    proto::ExchangeRequest push;
    push.mutable_push()->set_step(9);
    push.set_payload(std::string(100000, 'x'));
    call.Write(push.SerializeAsString());
    EXPECT_EQ(accepted->log.WaitForMessages(1).at(0).payload, std::string(100000, 'x'));
  }
}

TEST_F(ForeignClientTest, OnlyAnExchangeSharesMemory) {
  const auto memory = SharedPayloads::Create();
  ForeignCall call(address_, kStatusMethod, GRPC_COMPRESS_NONE, memory->offer());
  const auto accepted = WaitForAccepted(0);
  server_->OnLoop([&] { accepted->stream->Send(NumberedMessage(5)); });
  EXPECT_TRUE(call.Read().has_value());
  EXPECT_FALSE(call.offer_taken());
}

TEST_F(ForeignClientTest, StreamsAboveTheMaxShareMemoryOnceOthersEnd) {
  const auto taken = [this](size_t index, ForeignCall* call) {
    const auto accepted = WaitForAccepted(index);
    server_->OnLoop([&] { accepted->stream->Send(NumberedMessage(5)); });
    EXPECT_TRUE(call->Read().has_value());
    return call->offer_taken();
  };
  const auto memory = SharedPayloads::Create();
  std::vector<std::unique_ptr<ForeignCall>> calls;
  for (size_t i = 0; i < 3; ++i) {
    calls.push_back(std::make_unique<ForeignCall>(address_, kExchangeMethod, GRPC_COMPRESS_NONE,
                                                  memory->offer()));
    EXPECT_EQ(taken(i, calls.back().get()), i < 2);
  }
  calls.erase(calls.begin());
  EXPECT_FALSE(accepted_.at(0)->log.WaitForClose().ok());
  ForeignCall again(address_, kExchangeMethod, GRPC_COMPRESS_NONE, memory->offer());
  EXPECT_TRUE(taken(3, &again));
}

TEST_F(ForeignClientTest, APayloadAtAnInvalidPlaceEndsOnlyItsStream) {
  const auto memory = SharedPayloads::Create();
  ForeignCall call(address_, kExchangeMethod, GRPC_COMPRESS_NONE, memory->offer());
  const auto accepted = WaitForAccepted(0);
  proto::ExchangeRequest request;
  request.mutable_push()->set_step(1);
  request.mutable_shared_payload()->set_offset(uint64_t{1} << 40);
  request.mutable_shared_payload()->set_size(4);
  call.Write(request.SerializeAsString());
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("cannot lie at"));
  ExpectWorks(1);
}

TEST_F(ForeignClientTest, AMessageAboveTheMaxEndsOnlyItsStream) {
  ForeignCall call(address_, kExchangeMethod);
  call.Write(NumberedMessage(1).fields);
  call.Write(std::string(kMaxMessageBytes + 1, 'x'));
  EXPECT_EQ(call.Read(), std::nullopt);
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto accepted = WaitForAccepted(0);
  EXPECT_FALSE(accepted->log.WaitForClose().ok());
  EXPECT_EQ(accepted->log.entries().size(), 1u);
  ExpectWorks(1);
}

TEST_F(ForeignClientTest, AMessageAboveTheMaxOfItsMethodEndsOnlyItsStream) {
  ForeignCall call(address_, kStatusMethod);
  call.Write(NumberedMessage(1).fields);
  // A host name, say.
  call.Write("\x0a\x80\x80\x04" + std::string(65536, 'x'));
  EXPECT_EQ(call.Read(), std::nullopt);
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), ::testing::EndsWith(" 65536"));
  ExpectWorks(1);
}

// gRPC would read all of it first.
TEST_F(ForeignClientTest, ALongMessageIsRejectedAtItsBeginning) {
  for (const char* method : {kStatusMethod, kWorkMethod, kExchangeMethod, kControlMethod}) {
    ForeignCall call(address_, method);
    call.Write(std::string(40 << 20, 'x'));
    EXPECT_EQ(call.Read(), std::nullopt);
    const grpc::Status status = call.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr(method));
  }
  ExpectWorks(4);
}

TEST_F(ForeignClientTest, OnlyATrustedClientSendsLargeMessages) {
  // More than is read before its length is checked.
  const std::string payload(900'000, 'x');
  proto::ExchangeRequest push;
  push.mutable_push()->set_step(9);
  push.set_payload(payload);
  const std::string large = push.SerializeAsString();

  ForeignCall trusted(address_, kControlMethod);
  trusted.Write(NumberedMessage(1).fields);
  const auto accepted = WaitForAccepted(0);
  accepted->log.WaitForMessages(1);
  server_->OnLoop([&] { accepted->stream->TrustClient(); });
  trusted.Write(large);
  EXPECT_EQ(accepted->log.WaitForMessages(2).at(1).payload, payload);

  ForeignCall other(address_, kControlMethod);
  other.Write(NumberedMessage(1).fields);
  WaitForAccepted(1)->log.WaitForMessages(1);
  other.Write(large);
  EXPECT_EQ(other.Read(), std::nullopt);
  EXPECT_EQ(other.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectWorks(2);
}

TEST_F(ForeignClientTest, CompressedMessagesAreRejected) {
  ForeignCall call(address_, kExchangeMethod, GRPC_COMPRESS_GZIP);
  // Small when compressed, far above the cap when not.
  call.Write(std::string(64 << 20, 'x'));
  EXPECT_EQ(call.Read(), std::nullopt);
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  const auto accepted = WaitForAccepted(0);
  EXPECT_FALSE(accepted->log.WaitForClose().ok());
  EXPECT_TRUE(accepted->log.entries().empty());
  ExpectWorks(1);
}

TEST_F(ForeignClientTest, StreamsAboveTheMaxAreRejectedExceptHealthChecks) {
  std::vector<std::unique_ptr<ForeignCall>> calls;
  for (size_t i = 0; i < 8; ++i) {
    calls.push_back(std::make_unique<ForeignCall>(address_, kExchangeMethod));
    calls.back()->Write(NumberedMessage(1).fields);
    // Until it is read the stream is a silent one, which gives way.
    WaitForAccepted(i)->log.WaitForMessages(1);
  }
  ForeignCall rejected(address_, kExchangeMethod);
  EXPECT_EQ(rejected.Read(), std::nullopt);
  const grpc::Status status = rejected.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr(address_));

  ForeignCall check(address_, "/grpc.health.v1.Health/Check");
  check.Write("");
  EXPECT_TRUE(check.Read().has_value());

  calls.pop_back();
  EXPECT_FALSE(WaitForAccepted(7)->log.WaitForClose().ok());
  ExpectWorks(8);
}

// A client that opens streams and says nothing, beside two that talk.
TEST_F(ForeignClientTest, SilentStreamsGiveWayToNewOnes) {
  std::vector<std::unique_ptr<ForeignCall>> calls;
  for (size_t i = 0; i < 8; ++i) {
    calls.push_back(std::make_unique<ForeignCall>(address_, kExchangeMethod));
    WaitForAccepted(i);
    if (i % 4 != 0) continue;
    calls.back()->Write(NumberedMessage(1).fields);
    WaitForAccepted(i)->log.WaitForMessages(1);
  }
  ExpectWorks(8);
  EXPECT_FALSE(WaitForAccepted(1)->log.WaitForClose().ok());
  for (size_t i = 9; i < 20; ++i) {
    calls.push_back(std::make_unique<ForeignCall>(address_, kExchangeMethod));
    WaitForAccepted(i);
  }
  for (const size_t talking : {0, 4}) {
    calls[talking]->Write(NumberedMessage(2).fields);
    WaitForAccepted(talking)->log.WaitForMessages(2);
  }
}

// What a client says that its server cannot use does not help it, nor does it help to leave the
// answer unread.
TEST_F(ForeignClientTest, EndingStreamsGiveWay) {
  std::vector<std::unique_ptr<ForeignCall>> calls;
  for (size_t i = 0; i < 8; ++i) {
    calls.push_back(std::make_unique<ForeignCall>(address_, kExchangeMethod));
    const auto accepted = WaitForAccepted(i);
    calls.back()->Write(NumberedMessage(1).fields);
    accepted->log.WaitForMessages(1);
    server_->OnLoop([&] {
      // More than gRPC takes of a client that does not read.
      for (int k = 0; k < 8; ++k)
        accepted->stream->Send(NumberedMessage(k, std::string(1 << 19, 'a')));
      accepted->stream->Finish(absl::InvalidArgumentError("not understood"));
    });
  }
  ExpectWorks(8);
  EXPECT_EQ(WaitForAccepted(0)->log.WaitForClose().code(), absl::StatusCode::kResourceExhausted);
}

// Sends bytes to the port as they are, and waits until the server has closed the connection or said
// something.
void SendRaw(const std::string& address, const std::string& bytes) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  char answer[4096];
  // The server's settings frame comes first; then it reads ours and hangs up or waits for more.
  recv(fd, answer, sizeof(answer), 0);
  close(fd);
}

TEST_F(ForeignClientTest, GarbageOnThePortDisturbsNobody) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937_64 random(seed);
  StreamLog& log = NewLog();
  Stream* const stream = Open(&log);
  const auto accepted = WaitForAccepted(0);
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  std::vector<std::string> attacks = {"", "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                      std::string("\x16\x03\x01\x02\x00\x01", 6), preface};
  for (int i = 0; i < 50; ++i) {
    std::string noise(random() % 5000, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    attacks.push_back(i % 2 == 0 ? noise : preface + noise);
  }
  for (size_t i = 0; i < attacks.size(); ++i) {
    SendRaw(address_, attacks[i]);
    client_->OnLoop([&] { stream->Send(NumberedMessage(i)); });
    ASSERT_EQ(accepted->log.WaitForMessages(i + 1).back().number, i);
  }
  ExpectWorks(1);
}

}  // namespace
}  // namespace shoal
