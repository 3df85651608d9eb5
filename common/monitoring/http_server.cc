#include "common/monitoring/http_server.h"

#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/monitoring/http_connections.h"
#include "common/rpc/admission/client_connections.h"
#include "common/rpc/admission/listening_socket.h"

namespace shoal {
namespace {

using Clock = HttpConnections::Clock;

// The max number of connections with those that end but are not closed yet. Further ones wait in
// the system's queue.
constexpr size_t kMaxWithEnding = HttpConnections::kMax + 16;
// libmicrohttpd's own limit, which no connection should meet: it counts a closed one a bit longer.
constexpr unsigned kMaxOfLibrary = kMaxWithEnding + 16;
constexpr size_t kMaxRequestBytes = 8192;
// One of these threads may collect stats (Monitoring::Metrics). The others ask the event loop,
// which answers all of them or none.
constexpr int kHandlerThreads = 4;
// The wait before accepting again after running out of descriptors, and the max wait for
// libmicrohttpd to take a connection.
constexpr auto kPause = std::chrono::milliseconds(100);
// The max time between two looks at the deadlines.
constexpr auto kLook = std::chrono::milliseconds(1000);

// Returns the client's address without its port; empty for a socket in the file system.
std::string AddressOf(int fd) {
  const std::string peer = PeerOf(fd);
  return peer.substr(0, peer.rfind(':'));
}

// Requires a connection of a server with TLS.
gnutls_session_t SessionOf(MHD_Connection* handle) {
  return static_cast<gnutls_session_t>(
      MHD_get_connection_info(handle, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session);
}

HttpReply EndingReply() { return {503, "the daemon is stopping\n"}; }

// Uses libmicrohttpd with poll, not epoll: in version 0.9.75 its epoll loop never sleeps while a
// TLS handshake is incomplete. Accepts connections by itself, because libmicrohttpd can neither end
// a silent one for a new one, nor wait when descriptors run out.
class MicroHttpServer : public HttpServer {
 public:
  MicroHttpServer(ListeningSocket socket, int wake, Options options)
      : socket_(std::move(socket)),
        wake_(wake),
        options_(std::move(options)),
        connections_(options_.patience, options_.answer_patience) {}
  ~MicroHttpServer() override;

  // Starts the threads. Call it once.
  absl::Status Begin();

  std::string address() const override { return socket_.address(); }
  absl::Status SetTls(const TlsPem& pem) override;

 private:
  using State = HttpConnection::State;
  struct PendingRequest {
    HttpConnection* connection;
    HttpRequest request;
  };

  // libmicrohttpd's callbacks, on its thread.
  static MHD_Result OnRequest(void* self, MHD_Connection* handle, const char* path,
                              const char* method, const char* version, const char* body,
                              size_t* body_bytes, void** head_seen);
  static void OnConnection(void* self, MHD_Connection* handle, void** context,
                           MHD_ConnectionNotificationCode code);

  MHD_Result Continue(HttpConnection* connection, const char* path);
  MHD_Result Send(HttpConnection* connection, const HttpReply& reply);
  void Open(MHD_Connection* handle, void** context);
  void Close(HttpConnection* connection);

  void Accept();
  bool AcceptOne();
  int MillisecondsToNextLook();
  void Handle();

  const ListeningSocket socket_;
  const int wake_;  // an eventfd: the server must end
  const Options options_;
  MHD_Daemon* daemon_ = nullptr;
  // Those of the last closed connection, whose session ends after Close.
  std::shared_ptr<const TlsCredentials> last_closed_;

  Mutex mutex_;
  HttpConnections connections_ ABSL_GUARDED_BY(mutex_);
  uint64_t opened_ ABSL_GUARDED_BY(mutex_) = 0;  // connections, ever
  CondVar opened_changed_;
  std::shared_ptr<const TlsCredentials> tls_ ABSL_GUARDED_BY(mutex_);
  std::deque<PendingRequest> requests_ ABSL_GUARDED_BY(mutex_);
  CondVar requests_changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

absl::Status MicroHttpServer::Begin() {
  const auto number = [](auto value) { return static_cast<intptr_t>(value); };
  std::vector<MHD_OptionItem> items = {
      {MHD_OPTION_NOTIFY_CONNECTION, reinterpret_cast<intptr_t>(&OnConnection), this},
      {MHD_OPTION_CONNECTION_MEMORY_LIMIT, number(kMaxRequestBytes), nullptr},
      {MHD_OPTION_CONNECTION_LIMIT, number(kMaxOfLibrary), nullptr},
      {MHD_OPTION_CONNECTION_TIMEOUT, number(options_.patience.count()), nullptr},
  };
  unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC |
                   MHD_ALLOW_SUSPEND_RESUME;
  if (options_.tls.has_value()) {
    SHOAL_RETURN_IF_ERROR(SetTls(*options_.tls));
    flags |= MHD_USE_TLS;
    const auto text = [](const std::string& value) { return const_cast<char*>(value.c_str()); };
    // Each connection replaces certificate and key by those of tls_.
    items.push_back({MHD_OPTION_HTTPS_MEM_CERT, 0, text(options_.tls->certificate)});
    items.push_back({MHD_OPTION_HTTPS_MEM_KEY, 0, text(options_.tls->key)});
    items.push_back(
        {MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>("NORMAL:-VERS-ALL:+VERS-TLS1.3")});
  }
  items.push_back({MHD_OPTION_END, 0, nullptr});
  daemon_ = MHD_start_daemon(flags, 0, nullptr, nullptr, &OnRequest, this, MHD_OPTION_ARRAY,
                             items.data(), MHD_OPTION_END);
  if (daemon_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot serve HTTP at ", address(), ": ", std::strerror(errno)));
  }
  threads_.emplace_back([this] { Accept(); });
  for (int i = 0; i < kHandlerThreads; ++i) threads_.emplace_back([this] { Handle(); });
  return absl::OkStatus();
}

MicroHttpServer::~MicroHttpServer() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  requests_changed_.NotifyAll();
  eventfd_write(wake_, 1);
  for (std::thread& thread : threads_) thread.join();
  // libmicrohttpd must not stop while connections are suspended.
  std::vector<MHD_Connection*> suspended;
  {
    MutexLock lock(&mutex_);
    for (HttpConnection& each : connections_.all()) {
      if (each.state != State::kPending || each.reply.has_value()) continue;
      each.reply = EndingReply();
      suspended.push_back(each.handle);
    }
  }
  for (MHD_Connection* const each : suspended) MHD_resume_connection(each);
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  close(wake_);
}

absl::Status MicroHttpServer::SetTls(const TlsPem& pem) {
  if (!options_.tls.has_value()) return absl::FailedPreconditionError("the HTTP port has no TLS");
  SHOAL_ASSIGN_OR_RETURN(std::shared_ptr<const TlsCredentials> made, TlsCredentials::Make(pem));
  MutexLock lock(&mutex_);
  tls_ = std::move(made);
  return absl::OkStatus();
}

// The body of the thread that accepts connections and ends those that take too long.
void MicroHttpServer::Accept() {
  pthread_setname_np(pthread_self(), "http-accept");
  bool pause = false;
  while (true) {
    const int wait_ms = pause ? static_cast<int>(std::chrono::milliseconds(kPause).count())
                              : MillisecondsToNextLook();
    pollfd waiting[] = {{wake_, POLLIN, 0}, {pause ? -1 : socket_.fd(), POLLIN, 0}};
    poll(waiting, 2, wait_ms);
    if (waiting[0].revents != 0) return;
    pause = waiting[1].revents != 0 && !AcceptOne();
  }
}

// Cuts off the connections whose time is over. Returns the time until it must do so again; -1
// without connections.
int MicroHttpServer::MillisecondsToNextLook() {
  const Clock::time_point now = Clock::now();
  MutexLock lock(&mutex_);
  if (connections_.all().empty()) return -1;
  const std::optional<Clock::time_point> next = connections_.CutOffLate(now);
  // A pending connection may get its deadline at any time.
  const Clock::duration wait = std::min<Clock::duration>(next ? *next - now : kLook, kLook);
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
}

// Accepts a connection and waits until libmicrohttpd has it, so that all connections are counted.
// Returns false if the process or the system has no descriptor left, or if there are too many
// connections that end.
bool MicroHttpServer::AcceptOne() {
  {
    MutexLock lock(&mutex_);
    if (connections_.all().size() >= kMaxWithEnding) return false;
  }
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  const int fd = accept4(socket_.fd(), reinterpret_cast<sockaddr*>(&peer), &size,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  }
  uint64_t opened;
  {
    MutexLock lock(&mutex_);
    connections_.MakeRoom(AddressOf(fd));
    opened = opened_;
  }
  if (MHD_add_connection(daemon_, fd, reinterpret_cast<sockaddr*>(&peer), size) != MHD_YES)
    return true;
  const Clock::time_point deadline = Clock::now() + kPause;
  MutexLock lock(&mutex_);
  while (opened_ == opened && opened_changed_.WaitUntil(&mutex_, deadline)) {
  }
  return true;
}

void MicroHttpServer::OnConnection(void* self, MHD_Connection* handle, void** context,
                                   MHD_ConnectionNotificationCode code) {
  auto* const server = static_cast<MicroHttpServer*>(self);
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    server->Open(handle, context);
  } else {
    server->Close(static_cast<HttpConnection*>(*context));
  }
}

void MicroHttpServer::Open(MHD_Connection* handle, void** context) {
  const int fd = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
  MutexLock lock(&mutex_);
  *context = connections_.Add({.handle = handle, .fd = fd, .address = AddressOf(fd), .tls = tls_},
                              Clock::now());
  if (tls_ != nullptr) tls_->Use(SessionOf(handle));
  ++opened_;
  opened_changed_.NotifyAll();
}

void MicroHttpServer::Close(HttpConnection* connection) {
  MutexLock lock(&mutex_);
  last_closed_ = std::move(connection->tls);
  connections_.Remove(connection);
}

// libmicrohttpd calls this when it has the head of a request, for each part of a body, for the end
// of the request, and after MHD_resume_connection.
MHD_Result MicroHttpServer::OnRequest(void* self, MHD_Connection* handle, const char* path,
                                      const char* method, const char* /*version*/,
                                      const char* /*body*/, size_t* body_bytes, void** head_seen) {
  auto* const server = static_cast<MicroHttpServer*>(self);
  auto* const connection = static_cast<HttpConnection*>(
      MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
  if (*head_seen == nullptr) {
    *head_seen = connection;
    const bool served = std::string_view(method) == "GET" || std::string_view(method) == "HEAD";
    return served ? MHD_YES : server->Send(connection, {405, "only GET and HEAD are served\n"});
  }
  if (*body_bytes > 0) {
    *body_bytes = 0;  // ignored
    return MHD_YES;
  }
  return server->Continue(connection, path);
}

// Sends the answer if there is one, else gives the request to the handler's threads.
MHD_Result MicroHttpServer::Continue(HttpConnection* connection, const char* path) {
  std::optional<HttpReply> reply;
  {
    MutexLock lock(&mutex_);
    reply = std::move(connection->reply);
    if (ending_ && !reply) reply = EndingReply();
    if (reply) connections_.BeginAnswer(connection, Clock::now());
  }
  if (reply) return Send(connection, *reply);
  MHD_Connection* const handle = connection->handle;
  HttpRequest request;
  request.path = path;
  const char* const authorization =
      MHD_lookup_connection_value(handle, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
  if (authorization != nullptr) request.authorization = authorization;
  if (connection->tls != nullptr) request.client_certificate = ClientCertificate(SessionOf(handle));
  MHD_suspend_connection(handle);
  {
    MutexLock lock(&mutex_);
    connection->state = State::kPending;
    if (!ending_) {
      requests_.push_back({connection, std::move(request)});
      requests_changed_.NotifyOne();
      return MHD_YES;
    }
    // Whether or not the destructor has seen it: it resumes only those without a reply.
    connection->reply = EndingReply();
  }
  MHD_resume_connection(handle);
  return MHD_YES;
}

MHD_Result MicroHttpServer::Send(HttpConnection* connection, const HttpReply& reply) {
  {
    MutexLock lock(&mutex_);
    connections_.BeginAnswer(connection, Clock::now());
  }
  MHD_Response* const response = MHD_create_response_from_buffer(
      reply.body.size(), const_cast<char*>(reply.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply.content_type.c_str());
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  if (reply.status == 401)
    MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
  if (reply.status == 405) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  const MHD_Result queued = MHD_queue_response(connection->handle, reply.status, response);
  MHD_destroy_response(response);
  return queued;
}

// The body of the threads that make answers.
void MicroHttpServer::Handle() {
  pthread_setname_np(pthread_self(), "http-handler");
  while (true) {
    PendingRequest pending;
    {
      MutexLock lock(&mutex_);
      while (requests_.empty() && !ending_) requests_changed_.Wait(&mutex_);
      if (ending_) return;
      pending = std::move(requests_.front());
      requests_.pop_front();
    }
    HttpReply reply = options_.handler(pending.request);
    {
      MutexLock lock(&mutex_);
      pending.connection->reply = std::move(reply);
    }
    // It is not closed: libmicrohttpd does nothing with it while it is suspended.
    MHD_resume_connection(pending.connection->handle);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              Options options) {
  SHOAL_ASSIGN_OR_RETURN(ListeningSocket socket, ListeningSocket::Open(address));
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot serve HTTP at ", address, ": ", std::strerror(errno)));
  }
  auto server = std::make_unique<MicroHttpServer>(std::move(socket), wake, std::move(options));
  SHOAL_RETURN_IF_ERROR(server->Begin());
  return server;
}

}  // namespace shoal
