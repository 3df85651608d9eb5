#include "common/monitoring/http_connection.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

namespace shoal {
namespace {

constexpr std::chrono::hours kLongPatience{1};

// The client's end of a connection, and the descriptor of the server's.
class HttpConnectionTest : public ::testing::Test {
 protected:
  HttpConnectionTest() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_.data()), 0);
    const int bytes = 1 << 20;
    EXPECT_EQ(setsockopt(ends_[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
  }
  ~HttpConnectionTest() override { close(ends_[0]); }

  int server_end() const { return ends_[1]; }
  // As much of it as finds room.
  size_t Send(const std::string& text) {
    size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t count = send(ends_[0], text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) break;
      sent += count;
    }
    return sent;
  }
  size_t unread() const {
    int bytes = 0;
    EXPECT_EQ(ioctl(ends_[1], FIONREAD, &bytes), 0);
    return bytes;
  }

 private:
  std::array<int, 2> ends_;
};

// Else the thread that serves the port stays with it for as long as it sends.
TEST_F(HttpConnectionTest, AFloodAfterTheAnswerIsReadInSmallParts) {
  HttpConnection connection(server_end(), kLongPatience);
  Send("GET /page HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(connection.Proceed().has_value());
  const size_t flood = Send(std::string(1 << 20, 'x'));
  ASSERT_GT(flood, 128 << 10);
  connection.Answer("answer");
  EXPECT_EQ(connection.state(), HttpConnection::State::kEnding);
  EXPECT_EQ(unread(), flood - (64 << 10));
  const auto deadline = connection.deadline();
  connection.Proceed();
  EXPECT_EQ(unread(), flood - (128 << 10));
  EXPECT_EQ(connection.deadline(), deadline) << "it is not given more time for that";
}

}  // namespace
}  // namespace shoal
