#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace shoal {

struct HttpReply {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};

// Answers GET and HEAD over HTTP/1.1 from small pages made in memory; no file is ever served, one
// request a connection. One thread reads and writes, so that a client that sends nothing costs a
// descriptor and no thread; a few others make the answers. What clients can take is limited: a few
// connections, 8 KiB a request, a second or two to send it and to take the answer. Where there are
// more clients, the one that has been silent for longest makes room: who asks, is answered. Runs
// from Start to its destruction, which waits for the answers at hand. Thread-safe.
class HttpServer {
 public:
  // The answer to `path`; called on the server's threads, several at a time.
  using Handler = std::function<HttpReply(const std::string& path)>;

  struct Options {
    Handler handler;
    // For a whole request, and for each step of taking the answer.
    std::chrono::milliseconds patience = std::chrono::seconds(2);
  };

  // Serves at `address`, "127.0.0.1:9640"; port 0 takes a free one. Errors name the address and
  // what to do.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address,
                                                           Options options);
  virtual ~HttpServer() = default;

  // With the port that it has.
  virtual std::string address() const = 0;
};

}  // namespace shoal
