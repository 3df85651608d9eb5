#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/metrics/metric_samples.h"
#include "common/rpc/backoff.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "proto/evaluator.pb.h"
#include "worker/job/dataset_pass.h"
#include "worker/session/worker_figures.h"
#include "worker/step/step_computer.h"

namespace shoal {

// An evaluator from its hello to its end: has the coordinator name a checkpoint, and send its
// values, computes loss and metrics of the whole test set on them, and says what they add up to.
//
//   joining ── Welcome ──▶ preparing ── ready ──▶ idle ── EvaluateCheckpoint ──▶ reading
//      ▲                                           ▲                                │ all values
//      │                                           └── the last batch ── computing ◀┘
//      └── stream lost: what is begun is void ── … ── JobDone, Stop, failure ──▶ over
//
// It keeps nothing: who is killed is replaced by a new one, which is given the checkpoint again.
// State machine; loop thread only.
class EvaluatorSession {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    Network* network = nullptr;
    StepComputer* computer = nullptr;  // that only evaluates
    std::string chief;                 // address of the coordinator
    uint64_t incarnation = 0;          // random
    std::string host;
    uint64_t pid = 0;
    std::string device = "cpu";
    uint32_t threads = 1;
    // Without a coordinator for this long the evaluator gives up.
    Time coordinator_timeout = std::chrono::minutes(10);
    // Once. OK: the job is done. kCancelled: stopped. kUnavailable: there is no coordinator, or it
    // has another job now, which only another start takes. Else why it cannot evaluate here.
    std::function<void(const absl::Status&)> on_over;
  };
  explicit EvaluatorSession(Options options);

  void Start();
  // Leaves at once: what is begun is begun anew by whoever comes next.
  void Stop(const std::string& reason);

  // Its figures for Prometheus.
  void Collect(MetricSamples* out) const;
  // Why it can do no work now, in a line; empty while it can, also while there is none.
  std::string NotReady() const;

 private:
  enum class Activity { kIdle, kReading, kComputing };
  // The stream to the coordinator.
  void Open();
  void OnMessage(const Message& message);
  void OnClosed(const absl::Status& status);
  void Report(const proto::EvaluatorReport& report);
  // Says from time to time whom it waits for, if for anybody, and how far it is.
  void Watch();
  // Why there is no coordinator yet, as far as that is known.
  std::string Trouble() const;
  std::string NoCoordinator() const;

  void OnWelcome(const proto::EvaluatorWelcome& welcome);
  void OnPrepared(absl::StatusOr<StepComputer::Prepared> prepared);
  void SendReady();
  void OnEvaluate(const proto::EvaluateCheckpoint& evaluate);
  // Asks for values as long as few are on their way.
  void AskForValues();
  void OnValues(const proto::Values& values);
  void Compute();
  void OnComputed(absl::StatusOr<BatchOutcome> outcome);
  void SendProgress();
  void Begin(Activity activity);
  // What is going on is void.
  void Drop();
  void Leave(const absl::Status& why);
  void Over(const absl::Status& status);

  // A run of a variable's values that was asked for.
  struct Piece {
    size_t variable = 0;
    uint64_t offset_bytes = 0;
    uint32_t size_bytes = 0;
  };
  Piece TakePiece();

  const Options options_;
  std::unique_ptr<Stream> stream_;
  Backoff backoff_;
  Timer retry_{options_.loop};
  Timer watch_{options_.loop};
  std::string last_error_;  // of the stream to the coordinator
  bool refused_ = false;    // last_error_ is the coordinator's: not now
  bool welcomed_ = false;
  Time welcomed_at_{};
  Time alone_since_{};
  Time say_wait_at_{};
  bool preparing_ = false;
  uint32_t job_fingerprint_ = 0;  // of the job that is prepared, once preparing_ was set
  std::optional<StepComputer::Prepared> prepared_;

  Activity activity_ = Activity::kIdle;
  Time activity_began_{};
  WorkerFigures figures_;
  bool computing_ = false;   // the computer is busy, perhaps with something that was dropped
  uint64_t evaluation_ = 0;  // 0: none
  uint64_t work_ = 0;        // rises when what is going on is dropped
  std::string checkpoint_;
  std::vector<Piece> asked_;  // on their way
  size_t next_variable_ = 0;  // to be asked for, from next_byte_ on
  uint64_t next_byte_ = 0;
  uint64_t batches_done_ = 0;
  BatchResult sums_;

  bool over_ = false;
  std::optional<absl::Status> leaving_;  // how to end once the coordinator has closed the stream
  Timer leave_deadline_{options_.loop};
  const Scope scope_{options_.loop};
};

}  // namespace shoal
