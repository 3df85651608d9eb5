#include "common/rpc/admission/connection_acceptor.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>

#include "tests/common/base/fails_with.h"
#include "tests/common/rpc/test_node.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

// A client that connects to the port at the end of `address` and says nothing.
class SilentClient {
 public:
  explicit SilentClient(const std::string& address)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::atoi(&address[address.rfind(':') + 1])));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
  }
  ~SilentClient() { close(fd_); }
  bool connected() const { return connected_; }
  // The server has ended the connection.
  bool ended() const {
    char byte;
    return recv(fd_, &byte, 1, MSG_DONTWAIT) == 0;
  }
  bool AwaitEnd() const {
    const timeval patience = {.tv_sec = kTestDeadline.count(), .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    char byte;
    return recv(fd_, &byte, 1, 0) == 0;
  }

 private:
  const int fd_;
  bool connected_;
};

class ConnectionAcceptorTest : public ::testing::Test {
 protected:
  ~ConnectionAcceptorTest() override {
    acceptor_.reset();
    for (const int fd : accepted_) close(fd);
  }
  void Listen(const std::string& address, size_t max_connections, Time patience = Time::zero()) {
    absl::StatusOr<ListeningSocket> socket = ListeningSocket::Open(address);
    ASSERT_TRUE(socket.ok()) << socket.status();
    connections_ = std::make_unique<ClientConnections>(
        ClientConnections::Options{.max_connections = max_connections, .patience = patience});
    acceptor_ = std::make_unique<ConnectionAcceptor>(
        *std::move(socket),
        ConnectionAcceptor::Options{.connections = connections_.get(),
                                    .on_connection = [this](int fd) { OnConnection(fd); },
                                    .warn =
                                        [this](const std::string& warning) {
                                          MutexLock lock(&mutex_);
                                          warnings_.push_back(warning);
                                          changed_.NotifyAll();
                                        }});
  }
  void OnConnection(int fd) {
    if (all_talk_) connections_->BeginTalk(connections_->Find(PeerOf(fd)));
    MutexLock lock(&mutex_);
    accepted_.push_back(fd);
    changed_.NotifyAll();
  }
  // Closes those that the other end, or the acceptor, has shut down.
  void CloseEnded() {
    MutexLock lock(&mutex_);
    std::erase_if(accepted_, [](int fd) {
      char byte;
      if (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) != 0) return false;
      close(fd);
      return true;
    });
  }
  template <typename Condition>
  void Await(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
    MutexLock lock(&mutex_);
    while (!condition()) ASSERT_TRUE(changed_.WaitUntil(&mutex_, deadline)) << "waited in vain";
  }
  void AwaitAccepted(size_t count) {
    Await([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return accepted_.size() == count; });
  }
  void AwaitWarnings(size_t count) {
    Await([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return warnings_.size() == count; });
  }

  bool all_talk_ = true;
  Mutex mutex_;
  CondVar changed_;
  std::deque<int> accepted_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> warnings_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ClientConnections> connections_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;
};

TEST_F(ConnectionAcceptorTest, ConnectionsAboveTheMaxWaitForOthersToClose) {
  Listen("127.0.0.1:0", 3);
  std::deque<SilentClient> clients;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(clients.emplace_back(acceptor_->address()).connected());
  AwaitWarnings(1);
  const absl::Status accepting = acceptor_->CheckAccepting();
  EXPECT_TRUE(absl::IsResourceExhausted(accepting)) << accepting;
  EXPECT_THAT(accepting.message(), HasSubstr(acceptor_->address()));
  MutexLock lock(&mutex_);
  EXPECT_EQ(accepted_.size(), 3u);
  close(accepted_.front());
  accepted_.pop_front();
}

TEST_F(ConnectionAcceptorTest, PlacesOfClosedConnectionsAreTakenByOthers) {
  Listen("127.0.0.1:0", 2);
  std::deque<SilentClient> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(acceptor_->address());
  AwaitWarnings(1);
  {
    MutexLock lock(&mutex_);
    for (; !accepted_.empty(); accepted_.pop_front()) close(accepted_.front());
  }
  // The third may have the descriptor of the first.
  AwaitAccepted(2);
  {
    MutexLock lock(&mutex_);
    for (; !accepted_.empty(); accepted_.pop_front()) close(accepted_.front());
  }
  clients.emplace_back(acceptor_->address());
  AwaitAccepted(1);
  AwaitWarnings(2);
  EXPECT_TRUE(acceptor_->CheckAccepting().ok());
  MutexLock lock(&mutex_);
  EXPECT_THAT(warnings_[1], HasSubstr(acceptor_->address()));
}

TEST_F(ConnectionAcceptorTest, SilentConnectionsGiveWayToNewOnes) {
  all_talk_ = false;
  Listen("127.0.0.1:0", 2);
  std::deque<SilentClient> clients;
  clients.emplace_back(acceptor_->address());
  AwaitAccepted(1);
  {
    MutexLock lock(&mutex_);
    connections_->BeginTalk(connections_->Find(PeerOf(accepted_.front())));
  }
  for (size_t newcomer = 1; newcomer < 5; ++newcomer) {
    clients.emplace_back(acceptor_->address());
    if (newcomer == 1) {
      AwaitAccepted(2);
      continue;
    }
    EXPECT_TRUE(clients[newcomer - 1].AwaitEnd());
    CloseEnded();
    AwaitAccepted(2);
  }
  EXPECT_TRUE(acceptor_->CheckAccepting().ok());
  EXPECT_FALSE(clients.front().ended());
  AwaitWarnings(1);
  MutexLock lock(&mutex_);
  EXPECT_THAT(warnings_[0], HasSubstr("(ulimit -n)"));
}

TEST_F(ConnectionAcceptorTest, WarnsOnlyIfItClosesSilentConnections) {
  all_talk_ = false;
  Listen("127.0.0.1:0", 2, /*patience=*/std::chrono::hours(1));
  std::deque<SilentClient> clients;
  for (int i = 0; i < 10; ++i) clients.emplace_back(acceptor_->address());
  // Each that is accepted but the last is followed by one that finds no room.
  for (int i = 0; i < 8; ++i) {
    AwaitAccepted(2);
    MutexLock lock(&mutex_);
    close(accepted_.front());
    accepted_.pop_front();
  }
  AwaitAccepted(2);
  MutexLock lock(&mutex_);
  EXPECT_THAT(warnings_, ::testing::IsEmpty());
}

TEST_F(ConnectionAcceptorTest, AllAddressesIncludeIpv4) {
  for (const char* address : {"0.0.0.0:0", "[::]:0"}) {
    if (address[0] == '[' && !ListeningSocket::Open(address).ok()) continue;  // no IPv6 here
    Listen(address, 10);
    const SilentClient client(acceptor_->address());
    EXPECT_TRUE(client.connected());
    acceptor_.reset();
  }
}

TEST_F(ConnectionAcceptorTest, StopFreesThePort) {
  Listen("127.0.0.1:0", 10);
  const std::string address = acceptor_->address();
  const absl::Status taken = ListeningSocket::Open(address).status();
  EXPECT_THAT(taken, FailsWith(absl::StatusCode::kFailedPrecondition, {address}));
  acceptor_->Stop();
  EXPECT_FALSE(SilentClient(address).connected());
  acceptor_.reset();
  EXPECT_TRUE(ListeningSocket::Open(address).ok());
}

TEST(FileLimitTest, LeavesDescriptorsForFiles) {
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  for (const auto& [limit, connections] :
       std::vector<std::pair<rlim_t, size_t>>{{1024, 896}, {200, 100}, {before.rlim_cur, 500}}) {
    rlimit low = before;
    low.rlim_cur = std::min(limit, before.rlim_cur);
    setrlimit(RLIMIT_NOFILE, &low);
    EXPECT_LE(ConnectionsWithinFileLimit(limit == before.rlim_cur ? 500 : 5000), connections);
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace shoal
