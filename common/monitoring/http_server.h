#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace shoal {

// The answer to a request.
struct HttpReply {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};

// Answers GET and HEAD over HTTP/1.1 with small pages made in memory, one request per connection.
// It never serves files. One thread reads and writes, so that a silent client costs a descriptor
// but no thread; a few other threads make the answers.
//
// Limits on clients: a few connections, 8 KiB per request, a second or two to send it and to
// receive the answer. If there are more clients, the one that has been silent for longest is
// closed, so that a client with a request gets its answer.
//
// Runs from Start to its destructor, which waits for the answers in progress. Thread-safe.
class HttpServer {
 public:
  // Returns the answer for `path`; called on the server's threads, several at a time.
  using Handler = std::function<HttpReply(const std::string& path)>;

  struct Options {
    Handler handler;
    // The timeout for a whole request, and for each step of sending the answer.
    std::chrono::milliseconds patience = std::chrono::seconds(2);
  };

  // Serves at `address`, such as "127.0.0.1:9640"; port 0 picks a free port. Errors name the
  // address and the remedy.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address,
                                                           Options options);
  virtual ~HttpServer() = default;

  // The address with its actual port.
  virtual std::string address() const = 0;
};

}  // namespace shoal
