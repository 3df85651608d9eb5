#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "common/monitoring/http_server.h"
#include "common/monitoring/tls_credentials.h"

struct MHD_Connection;  // libmicrohttpd's

namespace shoal {

// A connection for one request and its answer.
//
//            request is whole           handler returns
//   reading ─────────────────▶ pending ─────────────────▶ answering ──▶ closed
//      └── cut off: too slow, or silent while others need room ──┴─────────▲
struct HttpConnection {
  enum class State { kReading, kPending, kAnswering };

  MHD_Connection* handle = nullptr;
  int fd = -1;                                // libmicrohttpd's
  std::string address;                        // of the client, without its port
  std::shared_ptr<const TlsCredentials> tls;  // null without TLS
  std::optional<HttpReply> reply;             // the handler's
  State state = State::kReading;
  std::chrono::steady_clock::time_point deadline;  // nobody waits for the client after it
  bool cut_off = false;
};

// The open connections of an HttpServer: ends those of clients that take too long, and silent ones
// if others need room. It shuts their sockets down, which makes libmicrohttpd close them. A pending
// connection has no deadline and is never ended, because the client does not cause the wait. Not
// thread-safe.
class HttpConnections {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMax = 64;
  static constexpr size_t kMaxOfAddress = 32;

  // The limits are HttpServer::Options'.
  HttpConnections(Clock::duration patience, Clock::duration answer_patience)
      : patience_(patience), answer_patience_(answer_patience) {}

  // Makes room for a connection from `address`. If there is none, ends the oldest connection from
  // the address with the most: first those without a whole request, then those that take
  // their answer, then those that wait for one.
  void MakeRoom(const std::string& address);
  // Adds a connection whose `fd` stays open until Remove. It is reading from `now` on.
  HttpConnection* Add(HttpConnection connection, Clock::time_point now);
  void Remove(HttpConnection* connection);
  // The answer is ready to be sent.
  void BeginAnswer(HttpConnection* connection, Clock::time_point now);

  // Ends the connections whose deadline has passed. Returns the next deadline, if there is one.
  std::optional<Clock::time_point> CutOffLate(Clock::time_point now);

  std::list<HttpConnection>& all() { return all_; }

 private:
  static void CutOff(HttpConnection* connection);

  const Clock::duration patience_;
  const Clock::duration answer_patience_;
  std::list<HttpConnection> all_;  // the oldest first; a list, because a connection must not move
};

}  // namespace shoal
