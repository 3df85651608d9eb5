#include "common/rpc/grpc_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/rpc/listen_address.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/rpc/event_loop_conformance.h"
#include "tests/common/rpc/network_conformance.h"
#include "tests/common/rpc/source_conformance.h"

namespace shoal {
namespace {

class GrpcTransport {
 public:
  explicit GrpcTransport(TransportLimits limits)
      : options_{.max_message_bytes = static_cast<int>(limits.message_bytes),
                 .max_queued_bytes = limits.queued_bytes,
                 .max_queued_messages = limits.queued_messages} {}
  std::unique_ptr<TestNode> CreateNode() const {
    return std::make_unique<TestNode>(GrpcNetwork::Create(options_),
                                      [](GrpcNetwork* network) { network->Run(Time::zero()); });
  }
  static std::string ListenAddress() { return "127.0.0.1:0"; }
  static std::string UnreachableAddress() { return "127.0.0.1:1"; }

 private:
  const GrpcNetwork::Options options_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Grpc, EventLoopConformance, GrpcTransport);
INSTANTIATE_TYPED_TEST_SUITE_P(Grpc, NetworkConformance, GrpcTransport);
INSTANTIATE_TYPED_TEST_SUITE_P(Grpc, SourceConformance, GrpcTransport);

class GrpcNetworkTest : public NetworkConformance<GrpcTransport> {};

TEST_F(GrpcNetworkTest, ListensAtAUnixSocket) {
  Start();
  StopServer();
  const TemporaryDirectory directory;
  const std::string address = "unix:" + directory / "socket";
  StartServer(address);
  EXPECT_EQ(address_, address);
  ExpectWorks(0);
}

TEST_F(GrpcNetworkTest, ListensAtIpv6) {
  Start();
  StopServer();
  if (!CheckCanListen("[::1]:0").ok()) GTEST_SKIP() << "no IPv6 here";
  StartServer("[::1]:0");
  EXPECT_THAT(address_, ::testing::StartsWith("[::1]:"));
  ExpectWorks(0);
  EXPECT_THAT(accepted_.at(0)->log.WaitForClose(), absl::OkStatus());
}

TEST_F(GrpcNetworkTest, AddressThatCannotBeListenedAtIsExplained) {
  struct Case {
    const char* address;
    const char* why;
  };
  for (const auto& [address, why] : {Case{"10.0.0.3", "HOST:PORT"}, Case{"localhost:", "HOST:PORT"},
                                     Case{"localhost:http:x", "not known"},
                                     Case{"192.0.2.7:2222", "not an address of this machine"},
                                     Case{"unix:/nowhere/at/all.sock", "could not bind"}}) {
    const absl::Status status =
        GrpcNetwork::Create({})
            ->Listen(address,
                     [](const std::string&, std::unique_ptr<Stream>) {
                       return absl::StatusOr<StreamCallbacks>(StreamCallbacks{});
                     })
            .status();
    EXPECT_THAT(std::string(status.message()),
                ::testing::AllOf(::testing::HasSubstr(address), ::testing::HasSubstr(why)));
  }
}

TEST_F(GrpcNetworkTest, ProxyOfTheEnvironmentIsIgnored) {
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  Start();
  ExpectWorks(0);
  unsetenv("http_proxy");
}

// Two clients of one server that may have one message at a time on the way: the one that does not
// read has its stream ended, so that the other gets all.
TEST_F(GrpcNetworkTest, AStreamThatIsNotReadDoesNotKeepTheBudgetFromOthers) {
  transport_ = std::make_unique<GrpcTransport>(TransportLimits{});
  client_ = transport_->CreateNode();
  const auto sleeper = transport_->CreateNode();
  server_ = std::make_unique<TestNode>(
      GrpcNetwork::Create({.max_writing_bytes = 1, .write_patience = std::chrono::seconds(2)}),
      [](GrpcNetwork* network) { network->Run(Time::zero()); });
  server_->OnLoop([&] {
    address_ = server_->network()
                   ->Listen("127.0.0.1:0",
                            [&](const std::string& method, std::unique_ptr<Stream> stream) {
                              return AcceptAndLog(method, std::move(stream));
                            })
                   .value();
  });
  StreamLog& unread_log = NewLog();
  std::unique_ptr<Stream> unread;
  sleeper->OnLoop([&] {
    unread = sleeper->network()->Open(address_, kExchangeMethod, unread_log.Callbacks());
  });
  const auto to_sleeper = WaitForAccepted(0);
  Event release, asleep;
  sleeper->loop()->Post([&] {
    asleep.Set();
    release.Wait();
  });
  EXPECT_TRUE(asleep.Wait());
  StreamLog& log = NewLog();
  Open(&log);
  const auto to_reader = WaitForAccepted(1);
  constexpr uint64_t kCount = 50;
  const auto messages = [](uint64_t first, uint64_t end) -> MessageSource {
    return [next = first, end]() mutable -> std::optional<Message> {
      if (next == end) return std::nullopt;
      return NumberedMessage(next++, std::string(1 << 20, 'a'));
    };
  };
  server_->OnLoop([&] {
    to_sleeper->stream->SendFrom(messages(0, 1000));
    to_reader->stream->SendFrom(messages(0, kCount));
  });
  EXPECT_EQ(log.WaitForMessages(kCount).size(), kCount);
  EXPECT_EQ(to_sleeper->log.WaitForClose().code(), absl::StatusCode::kResourceExhausted);
  release.Set();
  EXPECT_EQ(unread_log.WaitForClose().code(), absl::StatusCode::kUnavailable);
  sleeper->OnLoop([&] { unread.reset(); });
}

// A daemon may say its last words and stop in one callback.
TEST_F(GrpcNetworkTest, WhatIsQueuedAtStopIsStillSent) {
  constexpr size_t kMessages = 20;
  const auto run = [](GrpcNetwork* network) { network->Run(kTestDeadline); };
  const std::string payload(1 << 20, 'a');
  transport_ = std::make_unique<GrpcTransport>(TransportLimits{});
  client_ = std::make_unique<TestNode>(GrpcNetwork::Create({}), run);
  StartServer("127.0.0.1:0");
  StreamLog& leaving_log = NewLog();
  Stream* const leaving = Open(&leaving_log);
  const auto left = WaitForAccepted(0);
  client_->OnLoop([&] {
    for (size_t i = 0; i < kMessages; ++i) leaving->Send(NumberedMessage(i, payload));
    client_->loop()->Stop();
  });
  EXPECT_EQ(left->log.WaitForClose(), absl::OkStatus());
  EXPECT_EQ(left->log.entries().size(), kMessages);

  client_ = transport_->CreateNode();
  streams_.clear();
  server_->OnLoop([&] { left->stream.reset(); });
  server_ = std::make_unique<TestNode>(GrpcNetwork::Create({}), run);
  server_->OnLoop([&] {
    address_ = server_->network()
                   ->Listen("127.0.0.1:0",
                            [&](const std::string& method, std::unique_ptr<Stream> stream) {
                              return AcceptAndLog(method, std::move(stream));
                            })
                   .value();
  });
  StreamLog& log = NewLog();
  Open(&log);
  const auto stopping = WaitForAccepted(1);
  server_->OnLoop([&] {
    for (size_t i = 0; i < kMessages; ++i) stopping->stream->Send(NumberedMessage(i, payload));
    server_->loop()->Stop();
  });
  EXPECT_EQ(log.WaitForClose().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(log.entries().size(), kMessages);
  server_.reset();
  stopping->stream.reset();
}

}  // namespace
}  // namespace shoal
