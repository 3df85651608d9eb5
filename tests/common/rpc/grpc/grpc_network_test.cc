#include "common/rpc/grpc/grpc_network.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/admission/connection_acceptor.h"
#include "common/rpc/admission/listening_socket.h"
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
                 .max_queued_messages = limits.queued_messages,
                 .copying_threads = 2} {}
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

class GrpcNetworkTest : public NetworkConformance<GrpcTransport> {
 protected:
  using NetworkConformance<GrpcTransport>::StartServer;
  void StartServer(const GrpcNetwork::Options& options, Time grace) {
    NetworkConformance<GrpcTransport>::StartServer(
        std::make_unique<TestNode>(GrpcNetwork::Create(options),
                                   [grace](GrpcNetwork* network) { network->Run(grace); }),
        GrpcTransport::ListenAddress(), Logging());
  }
  GrpcNetwork& server_network() const { return dynamic_cast<GrpcNetwork&>(*server_->network()); }
  void AwaitAccepting(bool accepting) const {
    const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
    while (server_network().CheckAccepting().ok() != accepting) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "waited in vain";
      std::this_thread::yield();
    }
  }
};

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
  if (!ListeningSocket::Open("[::1]:0").ok()) GTEST_SKIP() << "no IPv6 here";
  StartServer("[::1]:0");
  EXPECT_THAT(address_, ::testing::StartsWith("[::1]:"));
  ExpectWorks(0);
  EXPECT_THAT(accepted_.at(0)->log.WaitForClose(), absl::OkStatus());
}

TEST_F(GrpcNetworkTest, ExplainsAnAddressAtWhichItCannotListen) {
  struct Case {
    const char* address;
    const char* why;
  };
  for (const auto& [address, why] : {Case{"10.0.0.3", "HOST:PORT"}, Case{"localhost:", "HOST:PORT"},
                                     Case{"localhost:http:x", "not known"},
                                     Case{"192.0.2.7:2222", "not an address of this machine"},
                                     Case{"unix:/nowhere/at/all.sock", "No such file"}}) {
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

// Two that wait for each other.
TEST_F(GrpcNetworkTest, CopiesRunInParallel) {
  Event begun[2], done[2];
  Start();
  client_->OnLoop([&] {
    for (int i = 0; i < 2; ++i) {
      client_->loop()->Offload(
          Lane::kCopies,
          [&, i] {
            begun[i].Set();
            begun[1 - i].Wait();
          },
          [&, i] { done[i].Set(); });
    }
  });
  EXPECT_TRUE(done[0].Wait());
  EXPECT_TRUE(done[1].Wait());
}

TEST_F(GrpcNetworkTest, ProxyOfTheEnvironmentIsIgnored) {
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  Start();
  ExpectWorks(0);
  unsetenv("http_proxy");
}

// Two clients of one server that may have one message at a time on the way: the one that does not
// read has its stream ended, so that the other gets all.
TEST_F(GrpcNetworkTest, AnUnreadStreamDoesNotHoldTheBudget) {
  transport_ = std::make_unique<GrpcTransport>(TransportLimits{});
  client_ = transport_->CreateNode();
  const auto sleeper = transport_->CreateNode();
  StartServer({.max_writing_bytes = 1, .write_patience = std::chrono::seconds(2)}, Time::zero());
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
  // More than the system keeps for a reader, so that some of it waits here.
  server_->OnLoop([&] {
    to_sleeper->stream->SendFrom(
        [] { return std::optional<Message>(NumberedMessage(0, std::string(1 << 20, 'a'))); });
  });
  // The reader wants one message after another, and gets each.
  size_t read = 0;
  while (to_sleeper->log.open() && read < 100000) {
    server_->OnLoop([&] {
      to_reader->stream->SendFrom(
          SourceOf([] { return NumberedMessage(0, std::string(1 << 10, 'a')); }));
    });
    ++read;
    ASSERT_EQ(log.WaitForMessages(read).size(), read);
  }
  EXPECT_EQ(to_sleeper->log.WaitForClose().code(), absl::StatusCode::kResourceExhausted);
  release.Set();
  EXPECT_EQ(unread_log.WaitForClose().code(), absl::StatusCode::kUnavailable);
  sleeper->OnLoop([&] { unread.reset(); });
}

// A daemon may say its last words and stop in one callback.
TEST_F(GrpcNetworkTest, QueuedMessagesAtStopAreStillSent) {
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
  StartServer({}, kTestDeadline);
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

// The descriptors of this process, down to the last one.
class AllDescriptors {
 public:
  AllDescriptors() {
    getrlimit(RLIMIT_NOFILE, &limit_);
    rlimit low = limit_;
    low.rlim_cur = std::min<rlim_t>(limit_.rlim_cur, 512);
    setrlimit(RLIMIT_NOFILE, &low);
    for (int fd = dup(0); fd >= 0; fd = dup(0)) taken_.push_back(fd);
  }
  ~AllDescriptors() {
    for (const int fd : taken_) close(fd);
    setrlimit(RLIMIT_NOFILE, &limit_);
  }

 private:
  rlimit limit_ = {};
  std::vector<int> taken_;
};

// A client that speaks no more of HTTP/2 than what a test has it say.
class RawClient {
 public:
  explicit RawClient(const std::string& address)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    to_.sin_family = AF_INET;
    to_.sin_port = htons(static_cast<uint16_t>(std::atoi(&address[address.rfind(':') + 1])));
    to_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience = {.tv_sec = kTestDeadline.count(), .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~RawClient() { close(socket_); }
  bool Connect() {
    return connect(socket_, reinterpret_cast<const sockaddr*>(&to_), sizeof(to_)) == 0;
  }
  void Send(const std::string& bytes) {
    EXPECT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // False when the server has closed the connection.
  bool TrySend(const std::string& bytes) {
    return send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // A frame, head and all; nothing when none comes or the server has closed.
  std::string ReceiveFrame() {
    std::string frame = Receive(9);
    if (frame.size() < 9) return "";
    const auto byte = [&](int i) { return static_cast<unsigned char>(frame[i]); };
    return frame + Receive((byte(0) << 16) + (byte(1) << 8) + byte(2));
  }

 private:
  std::string Receive(size_t size) {
    std::string bytes(size, '\0');
    return recv(socket_, bytes.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size) ? bytes
                                                                                        : "";
  }

  const int socket_;
  sockaddr_in to_ = {};
};

TEST_F(GrpcNetworkTest, ReportsAProgramThatDoesNotSpeakGrpc) {
  Start();
  for (const std::string& answer :
       {std::string("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
        std::string("SSH-2.0-OpenSSH_9.2\r\n")}) {
    Mutex mutex;
    std::vector<int> connections;
    ClientConnections known({.max_connections = 100});
    ConnectionAcceptor other(ListeningSocket::Open("127.0.0.1:0").value(),
                             {.connections = &known, .on_connection = [&](int fd) {
                                MutexLock lock(&mutex);
                                connections.push_back(fd);
                                send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
                              }});
    StreamLog& log = NewLog();
    Open(other.address(), log.Callbacks());
    const absl::Status status = log.WaitForClose();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(
        std::string(status.message()),
        other.address() + ": answers, but does not speak gRPC: another program uses this port");
    other.Stop();
    for (const int fd : connections) close(fd);
  }
}

// gRPC's own listener is closed for ever by the first connection that it has no descriptor for.
TEST_F(GrpcNetworkTest, AcceptsAgainOnceThereAreDescriptors) {
  Start();
  RawClient client(address_);
  {
    const AllDescriptors taken;
    ASSERT_TRUE(client.Connect());
    AwaitAccepting(false);
    EXPECT_THAT(
        server_network().CheckAccepting().message(),
        ::testing::AllOf(::testing::HasSubstr(address_), ::testing::HasSubstr("open files")));
  }
  ExpectWorks(0);
  AwaitAccepting(true);
}

// gRPC by itself asks twice and then no more, so that a client that vanished later than after half
// a minute of silence was never noticed.
TEST_F(GrpcNetworkTest, PingsASilentClientWithoutEnd) {
  transport_ = std::make_unique<GrpcTransport>(TransportLimits{});
  StartServer({.keepalive = {.silence_ms = 20}}, Time::zero());
  RawClient client(address_);
  ASSERT_TRUE(client.Connect());
  const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
  client.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings);
  for (int asked = 0; asked < 10;) {
    std::string frame = client.ReceiveFrame();
    ASSERT_NE(frame, "") << "asked " << asked << " times";
    constexpr char kPing = 6;
    constexpr char kAnswer = 1;
    if (frame[3] != kPing || frame[4] == kAnswer) continue;
    ++asked;
    frame[4] = kAnswer;
    client.Send(frame);
  }
}

// gRPC 1.51 keeps all headers of a request, and reads the beginning of an unfinished one again with
// every frame, for as long as they come.
TEST_F(GrpcNetworkTest, HeadersWithoutEndCloseTheConnection) {
  Start();
  RawClient client(address_);
  ASSERT_TRUE(client.Connect());
  const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
  const std::string headers("\0\0\7\1\0\0\0\0\1\0\3x-a\1b", 16);
  client.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + headers);
  std::string frame("\0\x3f\xff\x9\0\0\0\0\1", 9);
  while (frame.size() < 9 + 16383) frame += std::string("\0\3x-a\1b", 7);
  frame.resize(9 + 16383);
  size_t sent = 0;
  while (client.TrySend(frame)) {
    sent += frame.size();
    ASSERT_LT(sent, size_t{200} << 20) << "nobody minds";
  }
  ExpectWorks(0);
}

}  // namespace
}  // namespace shoal
