#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>

#include "common/monitoring/http_request.h"

namespace shoal {

// A connection for one request and its answer. The destructor closes its descriptor. Not
// thread-safe.
//
//            request is whole          Answer               all is sent
//   reading ─────────────────▶ pending ───────▶ answering ─────────────▶ ending ──▶ over
//      └── too long, no HTTP, or too late ──────────┴── the client is gone or too slow ──▲
class HttpConnection {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State { kReading, kPending, kAnswering, kEnding, kOver };

  // `patience` is the timeout for the whole request, and for each step of sending the answer.
  HttpConnection(int fd, Clock::duration patience);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  State state() const { return state_; }
  int fd() const { return fd_; }
  // The events to poll for: POLLIN, POLLOUT, or none.
  short events() const;
  // The time at which the client is too slow. Nothing while the server makes the answer, because
  // that is not the client's fault.
  std::optional<Clock::time_point> deadline() const;

  // Reads or writes without blocking, but reads only a little from a client that sends endlessly.
  // Returns the request once it is whole.
  std::optional<HttpRequest> Proceed();
  // Begins to send the answer `text`, a whole HTTP response. Requires the state pending.
  void Answer(std::string text);

 private:
  std::optional<HttpRequest> Read();
  void Write();
  void Discard();

  const int fd_;
  const Clock::duration patience_;
  State state_ = State::kReading;
  Clock::time_point deadline_;
  std::string text_;    // the request so far, or the answer
  size_t written_ = 0;  // of the answer
};

}  // namespace shoal
