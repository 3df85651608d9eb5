#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/monitoring/tls_credentials.h"

namespace shoal {

struct HttpRequest {
  std::string path;           // decoded, without "?" and the text after it
  std::string authorization;  // the header field of this name; empty without one
  // The client's certificate as DER; empty if the client shows none. An error if it shows one that
  // the CA of the server does not verify.
  absl::StatusOr<std::string> client_certificate = std::string();
};

// The answer to a request.
struct HttpReply {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};

// Answers GET and HEAD over HTTP/1.1 with small pages made in memory, one request per connection.
// It never serves files. libmicrohttpd parses the requests and sends the answers. One thread of it
// reads and writes all connections, so that a silent client costs a descriptor but no thread. A few
// threads make the answers, and one accepts connections and ends those that take too long.
//
// Limits on clients: 64 connections, 32 of them from one address, 8 KiB per request, a second or
// two to send it, TLS handshake included. If there are more clients, the longest silent connection
// from the address with the most is closed, so that a client with a request gets its answer.
//
// Runs from Start to its destructor, which waits for the answers in progress. Thread-safe.
class HttpServer {
 public:
  // Returns the answer; called on the server's threads, several at a time.
  using Handler = std::function<HttpReply(const HttpRequest& request)>;

  struct Options {
    Handler handler;
    // The server speaks TLS with these, and only that; without them plain HTTP.
    std::optional<TlsPem> tls;
    // The timeout for a whole request, and for each step of sending the answer. In whole seconds.
    std::chrono::seconds patience = std::chrono::seconds(2);
    // The timeout for sending the whole answer.
    std::chrono::seconds answer_patience = std::chrono::seconds(30);
  };

  // Serves at `address`, such as "127.0.0.1:9640"; port 0 picks a free port. Errors name the
  // address and the remedy, or what is wrong with the certificates.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address,
                                                           Options options);
  virtual ~HttpServer() = default;

  // The address with its actual port.
  virtual std::string address() const = 0;

  // New connections use these certificates; open ones keep theirs. An error, with nothing changed,
  // if key and certificate do not match, a text is no PEM, or the server has no TLS.
  virtual absl::Status SetTls(const TlsPem& pem) = 0;
};

}  // namespace shoal
