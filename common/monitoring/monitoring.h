#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/metrics/metric_samples.h"
#include "common/monitoring/http_security.h"
#include "common/monitoring/http_server.h"
#include "common/monitoring/metrics_access.h"
#include "common/monitoring/tls_credentials.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// The pages of a daemon for monitoring:
//
//   /metrics   its stats, for Prometheus (docs/metrics.md), for those who may see them
//   /healthz   200 while its event loop answers and peers can connect, else 503
//   /readyz    200 while it can do its own work, which never depends on a peer; else 503 and why
//
// The stats are plain numbers that belong to the loop's thread. A scrape asks the loop to copy
// them, so that counting needs no lock and no atomic. However many scrapes come, the loop is asked
// at most a few times a second. Thread-safe. Destroy it before the loop and everything that the
// callbacks use, and not on the loop's thread while the loop runs.
class Monitoring {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // outlives this
    // Both are called on the loop.
    std::function<void(MetricSamples*)> collect;
    // Returns OK while the daemon can do its own work, else why not; the message is one line.
    std::function<absl::Status()> check_ready;
    // Returns an error if peers cannot connect to the daemon; the message is one line. Any thread.
    // May be null.
    std::function<absl::Status()> check_accepting;
    // Collects the system's stats, which may be slow; called on a thread of the server. May be
    // null.
    std::function<void(MetricSamples*)> collect_off_loop;
    // A loop that takes longer than this to answer is unhealthy.
    std::chrono::milliseconds patience = std::chrono::seconds(5);
    // TLS, and who may see /metrics.
    HttpSecurity security;
  };
  explicit Monitoring(Options options) : options_(std::move(options)), access_(options_.security) {}

  // Starts to serve the pages. Errors are HttpServer::Start's.
  absl::Status Listen(const std::string& address);
  // New connections use these certificates. Requires Listen to be OK. An error, with nothing
  // changed, if they are not valid or TLS is off. Any thread.
  absl::Status ReplaceCertificates(const TlsPem& pem);
  // The address of the server. Requires Listen to be OK.
  std::string address() const { return server_->address(); }

  // Returns the page at the request's path; status 404 for other paths, and 401 or 403 for clients
  // that may not see the page. Thread-safe; waits for the loop.
  HttpReply Answer(const HttpRequest& request);

 private:
  struct Reply;

  // Runs `question` on the loop. Returns null if the loop did not answer in time, or has ended.
  std::shared_ptr<const Reply> Ask(std::function<void(Reply*)> question) const;
  HttpReply Metrics();
  std::string CollectMetrics() const;

  const Options options_;
  MetricsAccess access_;
  Mutex mutex_;
  // Only one thread of the server collects at a time. Otherwise a hanging disk could block all of
  // them, and with them /healthz. Scrapes in that time get the last stats.
  bool collecting_ ABSL_GUARDED_BY(mutex_) = false;
  std::string metrics_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point collected_at_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HttpServer> server_;  // last: it uses all other members
};

}  // namespace shoal
