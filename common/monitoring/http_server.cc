#include "common/monitoring/http_server.h"

#include <civetweb.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/listen_address.h"

namespace shoal {
namespace {

// Each connection keeps a thread until it is answered or its time is over, so a client that sends
// nothing costs a thread for a second. Whoever finds all of them taken, waits in the queue; behind
// that, in the system's.
constexpr char kThreads[] = "8";
constexpr char kQueue[] = "16";
constexpr char kBacklog[] = "64";
constexpr char kTimeoutMs[] = "1000";
constexpr char kMaxRequestBytes[] = "8192";

const char* StatusText(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Service Unavailable";
  }
}

class CivetServer : public HttpServer {
 public:
  CivetServer(std::string host, Handler handler)
      : host_(std::move(host)), handler_(std::move(handler)) {}
  ~CivetServer() override {
    if (context_ == nullptr) return;
    std::atomic<bool> stopped = false;
    std::thread stopping([this, &stopped] {
      mg_stop(context_);
      stopped = true;
    });
    // The thread that accepts sees that it is to stop after a connection, else every two seconds.
    while (!stopped) {
      Knock();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    stopping.join();
  }

  absl::Status Listen(const std::string& address) {
    const char* options[] = {"listening_ports",
                             address.c_str(),
                             "num_threads",
                             kThreads,
                             "connection_queue",
                             kQueue,
                             "listen_backlog",
                             kBacklog,
                             "request_timeout_ms",
                             kTimeoutMs,
                             "max_request_size",
                             kMaxRequestBytes,
                             "enable_keep_alive",
                             "no",
                             "enable_directory_listing",
                             "no",
                             nullptr};
    mg_callbacks callbacks = {};
    callbacks.begin_request = [](mg_connection* connection) {
      auto* const server = static_cast<CivetServer*>(mg_get_user_data(mg_get_context(connection)));
      return server->Answer(connection);
    };
    callbacks.log_message = [](const mg_connection*, const char*) { return 1; };  // not to stderr
    mg_init_library(0);
    context_ = mg_start(&callbacks, this, options);
    if (context_ == nullptr) {
      return absl::UnavailableError(absl::StrCat("cannot serve HTTP at ", address));
    }
    mg_server_port port = {};
    mg_get_server_ports(context_, 1, &port);
    port_ = port.port;
    return absl::OkStatus();
  }

  std::string address() const override { return absl::StrCat(host_, ":", port_); }

 private:
  // A connection from here, gone at once.
  void Knock() const {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST;
    addrinfo* self = nullptr;
    if (getaddrinfo(host_.c_str(), absl::StrCat(port_).c_str(), &hints, &self) != 0) return;
    const int fd = socket(self->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
      (void)connect(fd, self->ai_addr, self->ai_addrlen);
      close(fd);
    }
    freeaddrinfo(self);
  }

  // The status that was sent, which tells civetweb that nothing is left to do.
  int Answer(mg_connection* connection) const {
    const mg_request_info& request = *mg_get_request_info(connection);
    const std::string_view method = request.request_method;
    const bool head = method == "HEAD";
    const HttpReply reply = head || method == "GET"
                                ? handler_(request.local_uri == nullptr ? "" : request.local_uri)
                                : HttpReply{405, "only GET and HEAD are served\n"};
    std::string text = absl::StrCat("HTTP/1.1 ", reply.status, " ", StatusText(reply.status),
                                    "\r\nContent-Type: ", reply.content_type,
                                    "\r\nContent-Length: ", reply.body.size(),
                                    "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n");
    if (!head) text += reply.body;
    mg_write(connection, text.data(), text.size());
    return reply.status;
  }

  const std::string host_;
  const Handler handler_;
  mg_context* context_ = nullptr;
  int port_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              Handler handler) {
  // civetweb itself does not say what is wrong.
  SHOAL_RETURN_IF_ERROR(CheckCanListen(address));
  auto server =
      std::make_unique<CivetServer>(address.substr(0, address.rfind(':')), std::move(handler));
  SHOAL_RETURN_IF_ERROR(server->Listen(address));
  return server;
}

}  // namespace shoal
