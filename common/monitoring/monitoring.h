#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/metrics/metric_samples.h"
#include "common/monitoring/http_server.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// What a daemon shows to those who watch it:
//
//   /metrics   its figures, for Prometheus (docs/metrics.md)
//   /healthz   200 while its event loop answers and peers can connect, else 503
//   /readyz    200 while it can do its own work, which never means a peer; else 503 and why
//
// The figures are plain numbers that belong to the loop's thread: a scrape asks the loop to copy
// them, so that counting costs no lock and no atomic. However often they are asked for, the loop is
// asked a few times a second at most. Thread-safe; to be destroyed before the loop and whatever the
// callbacks use, and not on the loop while it runs.
class Monitoring {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // outlives this
    // Both are called on the loop.
    std::function<void(MetricSamples*)> collect;
    std::function<std::string()> not_ready;  // why not, in a line; empty: ready
    // Why nobody can connect to the daemon, in a line; empty: they can. Any thread. May be null.
    std::function<std::string()> deaf;
    // Figures of the system, which may be slow: called on a thread of the server. May be null.
    std::function<void(MetricSamples*)> collect_off_loop;
    // A loop that does not answer within this time is not healthy.
    std::chrono::milliseconds patience = std::chrono::seconds(5);
  };
  explicit Monitoring(Options options) : options_(std::move(options)) {}

  // Serves the pages from now on. Errors are HttpServer::Start's.
  absl::Status Listen(const std::string& address);
  // Where, once Listen was OK.
  std::string address() const { return server_->address(); }

  HttpReply Answer(const std::string& path);

 private:
  struct Reply;

  // Has `question` run on the loop; null when that did not come to it in time, or has ended.
  std::shared_ptr<const Reply> Ask(std::function<void(Reply*)> question) const;
  HttpReply Metrics();
  std::string CollectMetrics() const;

  const Options options_;
  Mutex mutex_;
  // By one thread of the server at a time: a disk that hangs must not take all of them, and with
  // them /healthz. Whoever comes meanwhile gets the figures before.
  bool collecting_ ABSL_GUARDED_BY(mutex_) = false;
  std::string metrics_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point collected_at_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HttpServer> server_;  // last: it uses the rest
};

}  // namespace shoal
