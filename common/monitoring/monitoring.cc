#include "common/monitoring/monitoring.h"

#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "common/monitoring/metrics_text.h"
#include "common/monitoring/process_stats.h"

namespace shoal {
namespace {

using Clock = std::chrono::steady_clock;

// The max age of reused stats.
constexpr auto kFresh = std::chrono::milliseconds(200);

}  // namespace

// The loop's answer. Shared with the loop, which may answer after the caller has stopped waiting.
struct Monitoring::Reply {
  absl::Status ready;
  MetricSamples samples;

  Mutex mutex;
  CondVar over_changed;
  bool answered ABSL_GUARDED_BY(mutex) = false;
  bool over ABSL_GUARDED_BY(mutex) = false;  // answered, or an answer is impossible

  void End(bool with_answer) {
    MutexLock lock(&mutex);
    answered = answered || with_answer;
    over = true;
    over_changed.NotifyAll();
  }
  bool Await(Clock::time_point deadline) {
    MutexLock lock(&mutex);
    while (!over && over_changed.WaitUntil(&mutex, deadline)) {
    }
    return answered;
  }
};

std::shared_ptr<const Monitoring::Reply> Monitoring::Ask(
    std::function<void(Reply*)> question) const {
  // A loop that has ended drops posted functions; the destructor then ends the wait.
  struct PendingReply {
    std::shared_ptr<Reply> reply = std::make_shared<Reply>();
    ~PendingReply() { reply->End(false); }
  };
  auto pending = std::make_shared<PendingReply>();
  const std::shared_ptr<Reply> reply = pending->reply;
  const Clock::time_point deadline = Clock::now() + options_.patience;
  options_.loop->Post([pending = std::move(pending), question = std::move(question)] {
    question(pending->reply.get());
    pending->reply->End(true);
  });
  return reply->Await(deadline) ? reply : nullptr;
}

absl::Status Monitoring::Listen(const std::string& address) {
  SHOAL_ASSIGN_OR_RETURN(
      server_,
      HttpServer::Start(address,
                        {.handler = [this](const HttpRequest& request) { return Answer(request); },
                         .tls = options_.security.tls}));
  return absl::OkStatus();
}

absl::Status Monitoring::ReplaceCertificates(const TlsPem& pem) { return server_->SetTls(pem); }

HttpReply Monitoring::Answer(const HttpRequest& request) {
  const HttpReply silent = {503, "the event loop does not answer: it is busy, or has ended\n"};
  const std::string& path = request.path;
  if (path == "/metrics") {
    std::optional<HttpReply> refusal = access_.Check(request);
    return refusal ? *std::move(refusal) : Metrics();
  }
  if (path == "/healthz") {
    if (Ask([](Reply*) {}) == nullptr) return silent;
    const absl::Status accepting =
        options_.check_accepting == nullptr ? absl::OkStatus() : options_.check_accepting();
    return accepting.ok() ? HttpReply{200, "ok\n"}
                          : HttpReply{503, std::string(accepting.message()) + "\n"};
  }
  if (path == "/readyz") {
    const auto reply = Ask([this](Reply* reply) { reply->ready = options_.check_ready(); });
    if (reply == nullptr) return silent;
    return reply->ready.ok() ? HttpReply{200, "ready\n"}
                             : HttpReply{503, std::string(reply->ready.message()) + "\n"};
  }
  return {404, "not found; try /metrics, /healthz or /readyz\n"};
}

HttpReply Monitoring::Metrics() {
  {
    MutexLock lock(&mutex_);
    const bool fresh = Clock::now() - collected_at_ <= kFresh;
    if (!metrics_.empty() && (fresh || collecting_)) return {200, metrics_, kMetricsTextType};
    if (collecting_) return {503, "the first stats are not collected yet\n"};
    collecting_ = true;
  }
  std::string metrics = CollectMetrics();
  MutexLock lock(&mutex_);
  metrics_ = std::move(metrics);
  collected_at_ = Clock::now();
  collecting_ = false;
  return {200, metrics_, kMetricsTextType};
}

std::string Monitoring::CollectMetrics() const {
  const Clock::time_point asked_at = Clock::now();
  const auto reply = Ask([this, asked_at](Reply* reply) {
    const std::chrono::duration<double> lag = Clock::now() - asked_at;
    reply->samples.Add("shoal_event_loop_lag_seconds", lag.count());
    options_.collect(&reply->samples);
  });
  // Report these even if the loop is stuck, because then they matter most.
  MetricSamples samples;
  if (reply != nullptr) samples = reply->samples;
  CollectProcessStats(&samples);
  if (options_.collect_off_loop != nullptr) options_.collect_off_loop(&samples);
  return MetricsText(samples);
}

}  // namespace shoal
