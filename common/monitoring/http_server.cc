#include "common/monitoring/http_server.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/monitoring/http_connection.h"
#include "common/rpc/admission/listening_socket.h"

namespace shoal {
namespace {

using Clock = HttpConnection::Clock;

constexpr size_t kMaxConnections = 64;
// One of these threads may collect stats (Monitoring::Metrics). The others ask the event loop,
// which answers all of them or none.
constexpr int kHandlerThreads = 4;
// The wait before accepting again after running out of descriptors.
constexpr auto kPause = std::chrono::milliseconds(100);

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

std::string TextOf(const HttpReply& reply, bool with_body) {
  std::string text = absl::StrCat("HTTP/1.1 ", reply.status, " ", StatusText(reply.status),
                                  "\r\nContent-Type: ", reply.content_type,
                                  "\r\nContent-Length: ", reply.body.size(),
                                  "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n");
  if (with_body) text += reply.body;
  return text;
}

class PollingHttpServer : public HttpServer {
 public:
  PollingHttpServer(ListeningSocket socket, int wake, Options options)
      : socket_(std::move(socket)), wake_(wake), options_(std::move(options)) {
    threads_.emplace_back([this] { Poll(); });
    for (int i = 0; i < kHandlerThreads; ++i) threads_.emplace_back([this] { Handle(); });
  }
  ~PollingHttpServer() override {
    {
      MutexLock lock(&mutex_);
      ending_ = true;
    }
    requests_changed_.NotifyAll();
    eventfd_write(wake_, 1);
    for (std::thread& thread : threads_) thread.join();
    close(wake_);
  }

  std::string address() const override { return socket_.address(); }

 private:
  // A list: a connection must not move before it is answered.
  using Connections = std::list<HttpConnection>;
  struct PendingRequest {
    HttpConnection* connection;
    HttpRequest request;
  };
  struct Answered {
    HttpConnection* connection;
    std::string text;
  };

  // The body of the thread that reads and writes.
  void Poll() {
    pthread_setname_np(pthread_self(), "http");
    while (true) {
      const auto now = Clock::now();
      std::erase_if(connections_, [now](const HttpConnection& each) {
        return each.state() == HttpConnection::State::kOver ||
               (each.deadline() && *each.deadline() <= now);
      });
      std::vector<pollfd> waiting = {{wake_, POLLIN, 0},
                                     {no_descriptor_ || IsFull() ? -1 : socket_.fd(), POLLIN, 0}};
      std::optional<Clock::time_point> first;
      if (no_descriptor_) first = Clock::now() + kPause;
      for (const HttpConnection& each : connections_) {
        // Does not poll a connection that is being answered, not even for the client's disconnect.
        waiting.push_back({each.events() == 0 ? -1 : each.fd(), each.events(), 0});
        if (each.deadline() && (!first || *each.deadline() < *first)) first = each.deadline();
      }
      poll(waiting.data(), waiting.size(), MillisecondsUntil(first));
      if (waiting[0].revents != 0 && !TakeAnswers()) return;
      size_t index = 2;
      for (HttpConnection& each : connections_) {
        if (waiting[index++].revents != 0) Proceed(&each);
      }
      no_descriptor_ = false;
      if (waiting[1].revents != 0 || waiting[1].fd < 0) AcceptAll();
    }
  }

  static int MillisecondsUntil(const std::optional<Clock::time_point>& time) {
    if (!time) return -1;
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(*time - Clock::now());
    return static_cast<int>(std::clamp<int64_t>(wait.count(), 0, 60'000));
  }

  void Proceed(HttpConnection* connection) {
    std::optional<HttpRequest> request = connection->Proceed();
    if (!request) return;
    MutexLock lock(&mutex_);
    requests_.push_back({connection, *std::move(request)});
    requests_changed_.NotifyOne();
  }

  // Returns false if the server must end.
  bool TakeAnswers() {
    eventfd_t count;
    eventfd_read(wake_, &count);
    std::vector<Answered> answered;
    {
      MutexLock lock(&mutex_);
      if (ending_) return false;
      answered.swap(answered_);
    }
    for (Answered& each : answered) each.connection->Answer(std::move(each.text));
    return true;
  }

  void AcceptAll() {
    while (!IsFull()) {
      const int fd = accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) {
        no_descriptor_ = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        return;
      }
      if (connections_.size() >= kMaxConnections) MakeRoom();
      connections_.emplace_back(fd, options_.patience);
      Proceed(&connections_.back());
    }
  }

  // Whether all connections are being answered, so that no one can make room. New clients then wait
  // in the system's queue.
  bool IsFull() const {
    return connections_.size() >= kMaxConnections &&
           std::all_of(connections_.begin(), connections_.end(), [](const HttpConnection& each) {
             return each.state() == HttpConnection::State::kPending;
           });
  }

  // Closes the oldest connection that is not being answered; prefers those without a whole request.
  void MakeRoom() {
    using State = HttpConnection::State;
    for (const State state : {State::kReading, State::kEnding, State::kAnswering}) {
      const auto oldest =
          std::find_if(connections_.begin(), connections_.end(),
                       [state](const HttpConnection& each) { return each.state() == state; });
      if (oldest == connections_.end()) continue;
      connections_.erase(oldest);
      return;
    }
  }

  // The body of the threads that make answers.
  void Handle() {
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
      const bool head = pending.request.method == "HEAD";
      const HttpReply reply = head || pending.request.method == "GET"
                                  ? options_.handler(pending.request.path)
                                  : HttpReply{405, "only GET and HEAD are served\n"};
      {
        MutexLock lock(&mutex_);
        answered_.push_back({pending.connection, TextOf(reply, /*with_body=*/!head)});
      }
      eventfd_write(wake_, 1);
    }
  }

  const ListeningSocket socket_;
  const int wake_;  // An eventfd: there are answers, or the server must end.
  const Options options_;
  // Used only by the polling thread.
  Connections connections_;
  bool no_descriptor_ = false;  // no descriptor was left for the last client

  Mutex mutex_;
  CondVar requests_changed_;
  std::deque<PendingRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<Answered> answered_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // last, so that they start after all other members exist
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              Options options) {
  SHOAL_ASSIGN_OR_RETURN(ListeningSocket socket, ListeningSocket::Open(address));
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot serve HTTP at ", address, ": ", std::strerror(errno)));
  }
  return std::make_unique<PollingHttpServer>(std::move(socket), wake, std::move(options));
}

}  // namespace shoal
