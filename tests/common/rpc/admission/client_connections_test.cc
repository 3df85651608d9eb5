#include "common/rpc/admission/client_connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <vector>

#include "common/rpc/admission/listening_socket.h"
#include "tests/common/rpc/test_node.h"

namespace shoal {
namespace {

using Room = ClientConnections::Room;

// Both ends of a connection in this process.
class ConnectionPair {
 public:
  ConnectionPair() : client_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const ListeningSocket listening = ListeningSocket::Open("127.0.0.1:0").value();
    sockaddr_in to = {};
    socklen_t size = sizeof(to);
    getsockname(listening.fd(), reinterpret_cast<sockaddr*>(&to), &size);
    EXPECT_EQ(connect(client_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    server_ = accept4(listening.fd(), nullptr, nullptr, SOCK_CLOEXEC);
  }
  ~ConnectionPair() {
    close(client_);
    Close();
  }
  void Close() {
    if (server_ >= 0) close(server_);
    server_ = -1;
  }
  int server() const { return server_; }
  std::string peer() const { return PeerOf(server_); }
  bool ended() const {
    char byte;
    return recv(client_, &byte, 1, MSG_DONTWAIT) == 0;
  }

 private:
  const int client_;
  int server_;
};

class ClientConnectionsTest : public ::testing::Test {
 protected:
  void Add(ClientConnections* connections, size_t count) {
    for (size_t i = 0; i < count; ++i) connections->Add(pairs_.emplace_back().server());
  }
  // Those that have been ended, these and no others, once the system has told the other end.
  void ExpectEnded(const std::vector<size_t>& expected) const {
    const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
    std::vector<size_t> ended;
    do {
      ended.clear();
      for (size_t i = 0; i < pairs_.size(); ++i) {
        if (pairs_[i].ended()) ended.push_back(i);
      }
    } while (ended.size() < expected.size() && std::chrono::steady_clock::now() < deadline);
    EXPECT_EQ(ended, expected);
  }
  std::deque<ConnectionPair> pairs_;
};

TEST_F(ClientConnectionsTest, TheLongestSilentConnectionGivesWay) {
  ClientConnections connections({.max_connections = 3, .patience = Time::zero()});
  Add(&connections, 2);
  EXPECT_EQ(connections.MakeRoom(), Room::kFree);
  Add(&connections, 1);
  connections.BeginTalk(connections.Find(pairs_[0].peer()));
  EXPECT_EQ(connections.MakeRoom(), Room::kSoon);
  ExpectEnded({1});
  EXPECT_EQ(connections.MakeRoom(), Room::kSoon);
  ExpectEnded({1});
  pairs_[1].Close();
  EXPECT_EQ(connections.MakeRoom(), Room::kFree);
}

TEST_F(ClientConnectionsTest, ASixteenthOfManyGivesWay) {
  ClientConnections connections({.max_connections = 64, .patience = Time::zero()});
  Add(&connections, 64);
  EXPECT_EQ(connections.MakeRoom(), Room::kSoon);
  ExpectEnded({0, 1, 2, 3});
}

TEST_F(ClientConnectionsTest, ATalkingConnectionStays) {
  ClientConnections connections({.max_connections = 2, .patience = Time::zero()});
  Add(&connections, 2);
  for (const ConnectionPair& pair : pairs_) connections.BeginTalk(connections.Find(pair.peer()));
  EXPECT_EQ(connections.MakeRoom(), Room::kNone);
  // By two streams, of which one ends.
  connections.BeginTalk(connections.Find(pairs_[1].peer()));
  connections.EndTalk(connections.Find(pairs_[1].peer()));
  EXPECT_EQ(connections.MakeRoom(), Room::kNone);
  connections.EndTalk(connections.Find(pairs_[1].peer()));
  EXPECT_EQ(connections.MakeRoom(), Room::kSoon);
  ExpectEnded({1});
}

TEST_F(ClientConnectionsTest, ANewConnectionHasTimeToTalk) {
  ClientConnections connections({.max_connections = 1, .patience = std::chrono::hours(1)});
  Add(&connections, 1);
  EXPECT_EQ(connections.MakeRoom(), Room::kLater);
  ExpectEnded({});
}

TEST_F(ClientConnectionsTest, AnotherFileWithTheDescriptorIsNotEnded) {
  ClientConnections connections({.max_connections = 1, .patience = Time::zero()});
  Add(&connections, 1);
  const int former = pairs_[0].server();
  const SocketMark mark(former);
  pairs_[0].Close();
  const ConnectionPair other;
  ASSERT_EQ(dup2(other.server(), former), former);
  EXPECT_FALSE(mark.IsOpen());
  mark.ShutDown();
  EXPECT_FALSE(other.ended());
  EXPECT_EQ(connections.MakeRoom(), Room::kFree);
  close(former);
}

TEST_F(ClientConnectionsTest, OneConnectionHasAMaxOfStreams) {
  ClientConnections connections({.max_connections = 9, .max_streams = 2});
  Add(&connections, 2);
  const uint64_t client = connections.Find(pairs_[0].peer());
  EXPECT_TRUE(connections.OpenStream(client));
  EXPECT_TRUE(connections.OpenStream(client));
  EXPECT_FALSE(connections.OpenStream(client));
  EXPECT_TRUE(connections.OpenStream(connections.Find(pairs_[1].peer())));
  connections.CloseStream(client);
  connections.CloseStream(client);
  EXPECT_TRUE(connections.OpenStream(client));
}

// From the port that it had, while streams of its former connection still end here.
TEST_F(ClientConnectionsTest, AClientThatReturnsHasANewCount) {
  ClientConnections connections({.max_connections = 2, .max_streams = 1, .patience = Time::zero()});
  const ConnectionPair& pair = pairs_.emplace_back();
  const int former = dup(pair.server());
  connections.Add(former);
  const uint64_t before = connections.Find(pair.peer());
  EXPECT_TRUE(connections.OpenStream(before));
  connections.BeginTalk(before);
  Add(&connections, 1);
  connections.BeginTalk(connections.Find(pairs_[1].peer()));
  close(former);
  EXPECT_EQ(connections.MakeRoom(), Room::kFree);
  connections.Add(pair.server());
  const uint64_t now = connections.Find(pair.peer());
  EXPECT_TRUE(connections.OpenStream(now));
  connections.BeginTalk(now);
  connections.CloseStream(before);
  connections.EndTalk(before);
  EXPECT_FALSE(connections.OpenStream(now));
  EXPECT_EQ(connections.MakeRoom(), Room::kNone);
}

// Streams of a socket in the file system do not say whose they are.
TEST_F(ClientConnectionsTest, LocalSocketsAreNotSilent) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  EXPECT_EQ(PeerOf(ends[0]), "");
  ClientConnections connections({.max_connections = 1, .max_streams = 0, .patience = Time::zero()});
  connections.Add(ends[0]);
  EXPECT_TRUE(connections.OpenStream(connections.Find("unix:")));
  EXPECT_EQ(connections.MakeRoom(), Room::kNone);
  for (const int end : ends) close(end);
}

}  // namespace
}  // namespace shoal
