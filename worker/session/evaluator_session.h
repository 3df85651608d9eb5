#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/metrics/metric_samples.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "common/rpc/windowed_fetch.h"
#include "proto/evaluator.pb.h"
#include "worker/job/dataset_pass.h"
#include "worker/session/coordinator_link.h"
#include "worker/session/worker_stats.h"
#include "worker/step/step_computer.h"

namespace shoal {

// An evaluator from its hello to its end. It pulls the values of a checkpoint from the coordinator,
// computes loss and metrics of the whole test set on them, and reports the sums.
//
//   joining ── Welcome ──▶ preparing ── ready ──▶ idle ── EvaluateCheckpoint ──▶ reading
//      ▲                                           ▲                                │ all values
//      │                                           └── the last batch ── computing ◀┘
//      └── stream lost: drops its work ── … ── JobDone, Stop, failure ──▶ over
//
// It keeps no state: a new evaluator replaces a killed one and gets the same checkpoint again.
// State machine; loop thread only.
class EvaluatorSession {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // all pointers must outlive this
    Network* network = nullptr;
    StepComputer* computer = nullptr;  // one that only evaluates
    std::string coordinator;           // address, HOST:PORT
    uint64_t incarnation = 0;          // random
    std::string host;
    uint64_t pid = 0;
    std::string device = "cpu";
    uint32_t threads = 1;
    bool may_quote_data = false;  // as of WorkerSession
    // The evaluator gives up after this long without a coordinator.
    Time coordinator_timeout = std::chrono::minutes(10);
    // Called once. OK: the job is done. kCancelled: stopped. kUnavailable: there is no coordinator,
    // or it has another job now; only a restart helps. Other errors: why it cannot evaluate here.
    std::function<void(const absl::Status&)> on_over;
  };
  explicit EvaluatorSession(Options options);

  void Start();
  // Leaves at once. The next evaluator starts the evaluation again.
  void Stop(const std::string& reason);

  // Adds its stats for Prometheus.
  void Collect(MetricSamples* out) const;
  // Returns OK while it can work, even if it has no work. Otherwise the message says why not, in a
  // line. kUnavailable: it is opening the job's data. kFailedPrecondition: its work is over.
  absl::Status CheckReady() const;

 private:
  enum class Activity { kIdle, kReading, kComputing };
  void SendHello();
  void OnMessage(const Message& message);
  void OnClosed();
  // Whether the stream may be reopened.
  bool IsQuiet() const;
  // Periodic: reports the progress, and logs each long wait for a checkpoint or for values.
  void Watch();

  void OnWelcome(const proto::EvaluatorWelcome& welcome);
  void OnPrepared(absl::StatusOr<StepComputer::Prepared> prepared);
  void SendReady();
  void OnEvaluate(const proto::EvaluateCheckpoint& evaluate);
  // Requests the values of all variables, a few pieces at a time.
  void FetchValues();
  void OnValues(const proto::Values& values);
  // Starts to compute if all values have arrived.
  void MaybeCompute();
  void Compute();
  void OnComputed(absl::StatusOr<BatchOutcome> outcome);
  void SendProgress();
  void Begin(Activity activity);
  // Cancels the current evaluation.
  void Drop();
  void Leave(const absl::Status& why);
  void Over(const absl::Status& status);

  // A range of a variable's values.
  struct Piece {
    size_t variable = 0;
    uint64_t offset_bytes = 0;
    uint32_t size_bytes = 0;
  };
  // All values, in pieces that fit into a message each.
  std::vector<Piece> Pieces() const;
  void RequestPiece(const Piece& piece);

  const Options options_;
  CoordinatorLink link_;
  Timer watch_{options_.loop};
  Time log_wait_at_{};
  bool preparing_ = false;
  uint32_t job_fingerprint_ = 0;  // of the prepared job; valid once preparing_ was set
  std::optional<StepComputer::Prepared> prepared_;

  Activity activity_ = Activity::kIdle;
  Time activity_began_{};
  WorkerStats stats_;
  bool computing_ = false;   // the computer is busy, perhaps with a cancelled evaluation
  uint64_t evaluation_ = 0;  // 0: none
  uint64_t work_ = 0;        // grows with each Drop(); tells late results apart
  std::string checkpoint_;
  // Fetches the evaluation's values. Empty until the former evaluation's last batch has ended.
  std::optional<WindowedFetch<Piece>> fetch_;
  uint64_t batches_done_ = 0;
  BatchResult sums_;

  const Scope scope_{options_.loop};
};

}  // namespace shoal
