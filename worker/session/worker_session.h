#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/metrics/metric_samples.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "common/step_plan/round.h"
#include "proto/coordinator.pb.h"
#include "proto/worker.pb.h"
#include "worker/exchange/parameter_exchange.h"
#include "worker/session/coordinator_link.h"
#include "worker/session/input_wait_share.h"
#include "worker/session/step_in_progress.h"
#include "worker/session/worker_stats.h"
#include "worker/step/step_computer.h"

namespace shoal {

// A worker from its hello to its end. It gets work from the coordinator, does it and reports it.
//
//   joining ── Welcome ──▶ preparing ── ready ──▶ idle ⇄ pulling / training / evaluating
//      ▲                                            │
//      └── stream ended (work continues meanwhile) ─┤── JobDone, Drain, SIGTERM, failure ──▶ over
//
// A computer that begins early gets its step when the first pulled chunks arrive. It then trains
// while the pull continues. The worker pushes no chunk of the step before the pull ends. If a ps no
// longer keeps the version that the step needs, the worker takes the step back.
//
// A step is done when its gradient is computed and every ps has acknowledged every chunk. It is
// also done when a ps answers that the round is complete. The worker then reports it, together with
// others if steps are short, and over a later stream if this one is lost. State machine; loop
// thread only.
class WorkerSession {
 public:
  enum class End {
    kJobDone,        // exit 0
    kDrained,        // 143
    kFailed,         // this worker cannot do the job; 65 or 78, by the status
    kNoCoordinator,  // or the coordinator has other ps or another job now; 138: restart helps
  };
  struct Options {
    EventLoop* loop = nullptr;  // all pointers must outlive this
    Network* network = nullptr;
    StepComputer* computer = nullptr;
    std::string coordinator;        // address, HOST:PORT
    std::optional<uint32_t> index;  // in the cluster spec; empty: the coordinator assigns one
    uint64_t incarnation = 0;       // random
    std::string host;
    uint64_t pid = 0;
    std::string device = "cpu";
    uint32_t threads = 1;
    // Whether errors that the coordinator gets may quote the files of the job's data: it has a
    // certificate, or is on this machine (TextForCoordinator).
    bool may_quote_data = false;
    // The worker gives up after this long without a coordinator.
    Time coordinator_timeout = std::chrono::minutes(10);
    // Time to finish the leased steps. The worker begins no step after half of it. The process
    // needs some more time to exit; both together take at most 10 s.
    Time drain_timeout = std::chrono::seconds(6);
    // Called for every finished step, for step records; may be null.
    std::function<void(uint64_t timeline, uint64_t step)> on_step;
    // Called when the worker gets its index, and when the index changes; may be null.
    std::function<void(uint32_t index)> on_index;
    // Called once, at the end.
    std::function<void(End, const absl::Status&)> on_over;
  };
  explicit WorkerSession(Options options);

  void Start();
  // Finishes the leased steps within drain_timeout, hands back the rest, and ends.
  void Drain(const std::string& reason);

  // Adds its stats for Prometheus.
  void Collect(MetricSamples* out) const;
  // Returns the stats of the mean step, for the log at the end (WorkerStats::PerStep).
  LogFields PerStep() const { return stats_.PerStep(); }
  // Returns OK while it can work, even if it has no work. Otherwise the message says why not, in a
  // line. kUnavailable: it is opening the job's data. kFailedPrecondition: it is draining, or its
  // work is over.
  absl::Status CheckReady() const;

 private:
  enum class Activity { kIdle, kPulling, kTraining, kPullingCut, kEvaluating };
  static std::optional<WorkerStats::Phase> PhaseOf(Activity activity);
  struct EvaluationOrder {
    uint64_t cut_step = 0;
    uint64_t batch = 0;
  };
  struct LeasedStep {
    uint64_t step = 0;
    std::optional<Round> round;
  };

  void OnMessage(const Message& message);
  void OnClosed();
  void SendHello();
  // Whether the stream may be reopened. The coordinator keeps leases meanwhile, but does not repeat
  // an order that is lost with a stream.
  bool IsQuiet() const;
  void SendReopening();
  // Periodic: logs each long wait for work or for a ps, and reports it to the coordinator.
  void WatchWaits();
  // Returns the current activity, for logs.
  std::string CurrentActivity() const;
  // Returns ", batch 3 of 50," if the current step has several batches, else "".
  std::string Batches() const;
  void CollectWaits(MetricSamples* out) const;

  void OnWelcome(const proto::Welcome& welcome);
  // Error unless a coordinator of this version can send this welcome.
  absl::Status CheckWelcome(const proto::Welcome& welcome) const;
  void OnPrepared(absl::StatusOr<StepComputer::Prepared> prepared);
  void SendReady();
  void OnTimelineOpened(uint64_t timeline);
  void OnLease(const proto::Lease& lease);
  void OnHalt(const proto::Halt& halt);
  void OnResume(const proto::Resume& resume);
  void OnEvaluate(const proto::Evaluate& evaluate);
  void OnTimelineLost(const std::string& why);
  // Cancels all work and continues in `timeline`; 0: in none.
  void DropWork(uint64_t timeline);

  // Begins the next work if the worker is idle.
  void Next();
  // Whether the worker must not begin a step now.
  bool Holds() const {
    return step_.halted() || (draining_ && options_.loop->Now() >= no_step_after_);
  }
  // Counts the time of the current activity, then switches to `activity`.
  void Begin(Activity activity);
  // Whether the step can be computed from the current parameters.
  bool ParametersFit(const LeasedStep& leased) const;
  void PullParametersFor(const LeasedStep& leased);
  // Handles the end of a pull; kOutOfRange: a ps no longer keeps `version`.
  void OnPulled(const std::optional<uint64_t>& version, const absl::Status& status);
  // Handles the arrival of a chunk's values in the parameters.
  void OnArrived(int ps, int chunk);
  // Begins the step of the current pull if the computer accepts it before the pull ends.
  void MaybeTrainEarly();
  // Begins the first leased step.
  void Train();
  // Starts the pushes of step_, which belongs to `round`. Requires that all its parameters are
  // here.
  void BeginPushes(const std::optional<Round>& round);
  // Whether the computer is busy and does not only wait for a ps.
  bool Computes() const { return computing_ && !exchange_->pulling(); }
  // Pushes a computed chunk of the step, or holds it back during a halt.
  void OnChunk(int ps, int chunk);
  // Ends a halt and pushes the chunks that it held back.
  void EndHalt();
  // Cancels the current step, which nobody needs. Requires that none of its chunks was pushed.
  void CancelCurrentStep();
  // Reports the leased steps of the round that begins with `version` as done, and of earlier
  // rounds. Requires that this round is complete on all ps.
  void OnRoundComplete(uint64_t version);
  // Prefetches the batches of the remaining leases after some were removed.
  void PrefetchLeases();
  void OnComputed(absl::StatusOr<BatchOutcome> outcome);
  // Pushes a skip for each chunk of a skipped step.
  void PushSkip();
  void MaybeFinishStep();
  // Reports the finished steps if there are enough of them; else within a short time.
  void MaybeReportSteps();
  void ReportSteps();
  void PullCut(const EvaluationOrder& order);
  void Evaluate(const EvaluationOrder& order);
  // Whether a draining worker can leave: it trains no step, has reported its finished steps, and no
  // lease is in flight to it. A lease that arrives too late leaves a gap below the steps that other
  // workers have done. Nobody fills this gap if all workers leave at once. While the stream is
  // reopened, leases may be in flight too, and the coordinator would wait for the next hello.
  bool MayLeave() const {
    if (!draining_ || preparing_ || activity_ == Activity::kTraining || !leases_.empty())
      return false;
    if (link_.welcomed()) return no_more_leases_;
    return !link_.reopening() && unreported_.steps_size() == 0;
  }
  void SendDraining();
  void SendLeaving(const absl::Status& why);
  // Sends the coordinator `why`, waits shortly until it closes the stream, then ends.
  void Leave(const absl::Status& why);
  void Over(End end, const absl::Status& status);
  // Ends because the cluster has another job or other ps now: only a restart helps. A draining
  // worker ends as drained, because it has no work left.
  void EndForOtherCluster(const absl::Status& why);

  const Options options_;
  CoordinatorLink link_;
  Timer watch_{options_.loop};
  Time activity_began_{};
  WorkerStats stats_;
  InputWaitShare input_wait_share_;

  std::optional<uint32_t> index_;
  std::vector<std::string> ps_;
  uint32_t job_fingerprint_ = 0;  // of the prepared job, like ps_
  bool preparing_ = false;
  std::optional<StepComputer::Prepared> prepared_;
  std::unique_ptr<ParameterExchange> exchange_;

  uint64_t timeline_ = 0;
  uint64_t work_ = 0;  // grows when the work is cancelled; tells late results apart
  std::deque<LeasedStep> leases_;
  std::deque<EvaluationOrder> evaluations_;
  Activity activity_ = Activity::kIdle;
  // Step of the current pull; empty once this step was revoked.
  std::optional<LeasedStep> pulled_for_;
  bool computing_ = false;  // the computer is busy, perhaps with a cancelled step or batch
  // The parameters are of this timeline and include this worker's last push, or were pulled for the
  // next step.
  bool parameters_fresh_ = false;
  // Version of all parameter chunks in this timeline; empty: unknown.
  std::optional<uint64_t> parameters_version_;
  uint64_t pulled_cut_step_ = 0;  // step of the cut in cut_parameters; 0: none
  StepInProgress step_;
  proto::StepsDone unreported_;
  bool reopening_ = false;           // from SendReopening() until a coordinator welcomes it
  Timer report_due_{options_.loop};  // set while steps wait to be reported

  bool draining_ = false;
  bool no_more_leases_ = false;  // the coordinator said this over the current stream
  std::string drain_reason_;
  Time no_step_after_{};  // while draining: no step begins from this time on
  Timer drain_deadline_{options_.loop};
  const Scope scope_{options_.loop};
};

}  // namespace shoal
