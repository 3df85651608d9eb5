#include "common/monitoring/http_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace shoal {
namespace {

constexpr size_t kMaxRequestBytes = 8192;
// The max bytes to discard at once after the answer: other connections wait meanwhile.
constexpr size_t kMaxDiscardedBytes = 64 << 10;

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

HttpConnection::HttpConnection(int fd, Clock::duration patience)
    : fd_(fd), patience_(patience), deadline_(Clock::now() + patience) {}

HttpConnection::~HttpConnection() { close(fd_); }

short HttpConnection::events() const {
  if (state_ == State::kAnswering) return POLLOUT;
  return state_ == State::kReading || state_ == State::kEnding ? POLLIN : 0;
}

std::optional<HttpConnection::Clock::time_point> HttpConnection::deadline() const {
  if (state_ == State::kPending) return std::nullopt;
  return deadline_;
}

std::optional<HttpRequest> HttpConnection::Proceed() {
  if (state_ == State::kReading) return Read();
  if (state_ == State::kAnswering) {
    Write();
  } else if (state_ == State::kEnding) {
    Discard();
  }
  return std::nullopt;
}

std::optional<HttpRequest> HttpConnection::Read() {
  char buffer[2048];
  for (;;) {
    const ssize_t count = recv(fd_, buffer, sizeof(buffer), 0);
    if (count < 0 && WouldBlock()) return std::nullopt;
    if (count <= 0) break;
    text_.append(buffer, count);
    if (text_.size() > kMaxRequestBytes) break;
    const size_t end = EndOfHead(text_);
    if (end == std::string::npos) continue;
    std::optional<HttpRequest> request = ParseHttpRequest(text_.substr(0, end));
    state_ = request.has_value() ? State::kPending : State::kOver;
    return request;
  }
  state_ = State::kOver;
  return std::nullopt;
}

void HttpConnection::Answer(std::string text) {
  text_ = std::move(text);
  state_ = State::kAnswering;
  deadline_ = Clock::now() + patience_;
  Write();
}

void HttpConnection::Write() {
  while (written_ < text_.size()) {
    const ssize_t count = send(fd_, text_.data() + written_, text_.size() - written_, MSG_NOSIGNAL);
    if (count < 0 && WouldBlock()) return;
    if (count <= 0) {
      state_ = State::kOver;
      return;
    }
    written_ += count;
    deadline_ = Clock::now() + patience_;
  }
  // Closing a socket with unread bytes would discard the answer.
  shutdown(fd_, SHUT_WR);
  state_ = State::kEnding;
  Discard();
}

void HttpConnection::Discard() {
  char buffer[2048];
  for (size_t discarded = 0; discarded < kMaxDiscardedBytes;) {
    const ssize_t count = recv(fd_, buffer, sizeof(buffer), 0);
    if (count < 0 && WouldBlock()) return;
    if (count <= 0) {
      state_ = State::kOver;
      return;
    }
    discarded += count;
  }
}

}  // namespace shoal
