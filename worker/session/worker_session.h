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
#include "common/rpc/backoff.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "common/step_plan/round.h"
#include "proto/coordinator.pb.h"
#include "proto/worker.pb.h"
#include "worker/exchange/parameter_exchange.h"
#include "worker/session/input_wait_share.h"
#include "worker/session/worker_figures.h"
#include "worker/step/step_computer.h"

namespace shoal {

// A worker from its hello to its end: asks the coordinator for work, does it, reports it.
//
//   joining ── Welcome ──▶ preparing ── ready ──▶ idle ⇄ pulling / training / evaluating
//      ▲                                            │
//      └── stream lost (work goes on meanwhile) ────┤── JobDone, Drain, SIGTERM, failure ──▶ over
//
// A computer that begins early is given its step when the first chunks that are pulled for it are
// there: then it is training while the pull goes on, and nothing of the step is pushed before that
// is over. A step of which a ps keeps the version no more is taken back.
//
// A step is over when its gradient is computed and every ps has acknowledged every chunk, or when a
// ps says that its round is complete; then it
// is reported, with others where steps are short, over a later stream if this one is gone. State
// machine; loop thread only.
class WorkerSession {
 public:
  enum class End {
    kJobDone,        // exit 0
    kDrained,        // 143
    kFailed,         // this worker cannot do the job: 65 or 78, by the status
    kNoCoordinator,  // or it has other ps or another job now; 138: worth a restart
  };
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    Network* network = nullptr;
    StepComputer* computer = nullptr;
    std::string chief;              // address of the coordinator
    std::optional<uint32_t> index;  // in the cluster spec; without, the coordinator gives one
    uint64_t incarnation = 0;       // random
    std::string host;
    uint64_t pid = 0;
    std::string device = "cpu";
    uint32_t threads = 1;
    // Without a coordinator for this long the worker gives up.
    Time coordinator_timeout = std::chrono::minutes(10);
    // For the steps that it holds, of which none is begun after half of it; with what the process
    // needs to end, it is gone within 10 s.
    Time drain_timeout = std::chrono::seconds(6);
    // Every finished step, for step records; may be null.
    std::function<void(uint64_t timeline, uint64_t step)> on_step;
    // The worker has its index, or another than before; may be null.
    std::function<void(uint32_t index)> on_index;
    std::function<void(End, const absl::Status&)> on_over;
  };
  explicit WorkerSession(Options options);

  void Start();
  // Finishes the steps that it holds, as far as drain_timeout reaches, hands back the rest, and is
  // over.
  void Drain(const std::string& reason);

  // Its figures for Prometheus.
  void Collect(MetricSamples* out) const;
  // The same of its mean step, for the log, when it is over (WorkerFigures::PerStep).
  LogFields PerStep() const { return figures_.PerStep(); }
  // Why it can do no work now, in a line; empty while it can, also while there is none.
  std::string NotReady() const;

 private:
  enum class Activity { kIdle, kPulling, kTraining, kPullingCut, kEvaluating };
  static std::optional<WorkerFigures::Phase> PhaseOf(Activity activity);
  struct EvaluationOrder {
    uint64_t cut_step = 0;
    uint64_t batch = 0;
  };
  struct LeasedStep {
    uint64_t step = 0;
    std::optional<Round> round;
  };

  // The stream to the coordinator.
  void Open();
  void OnMessage(const Message& message);
  void OnClosed(const absl::Status& status);
  void SendHello();
  // Says every few seconds whom this worker waits for, if for anybody.
  void WatchWaits();
  // Why there is none to work for, for people.
  // Why there is no coordinator yet, as far as that is known.
  std::string Trouble() const;
  std::string NoCoordinator() const;
  // What is going on, for people.
  std::string Doing() const;
  // ", batch 3 of 50,", of the step being computed, where it has several.
  std::string Batches() const;
  void CollectWaits(MetricSamples* out) const;
  void Report(const proto::WorkerReport& report);

  void OnWelcome(const proto::Welcome& welcome);
  // Not OK: no coordinator of this version would have said it.
  absl::Status CheckWelcome(const proto::Welcome& welcome) const;
  void OnPrepared(absl::StatusOr<StepComputer::Prepared> prepared);
  void SendReady();
  void OnTimelineOpened(uint64_t timeline);
  void OnLease(const proto::Lease& lease);
  void OnHalt(const proto::Halt& halt);
  void OnResume(const proto::Resume& resume);
  void OnEvaluate(const proto::Evaluate& evaluate);
  void OnTimelineLost(const std::string& why);
  // Forgets all that is going on; in `timeline` from now on, 0 = none.
  void DropWork(uint64_t timeline);

  // Begins whatever is next, if nothing is going on.
  void Next();
  // No step is to be begun now, whatever is leased.
  bool Holds() const { return halted_ || (draining_ && options_.loop->Now() >= no_step_after_); }
  void Begin(Activity activity);
  // The parameters are those that the step is computed from.
  bool ParametersFit(const LeasedStep& leased) const;
  void PullParametersFor(const LeasedStep& leased);
  // That is over; kOutOfRange: `version` is kept no more.
  void OnPulled(const std::optional<uint64_t>& version, const absl::Status& status);
  // Values of a chunk are in the parameters.
  void OnArrived(int ps, int chunk);
  // Begins the step that is pulled for, if the computer takes it already.
  void MaybeTrainEarly();
  // Begins the first of the leases.
  void Train();
  // All of the parameters of step_, which is of this round, are there.
  void BeginPushes(const std::optional<Round>& round);
  // The computer is busy, and does not just wait for a ps.
  bool Computes() const { return computing_ && !exchange_->pulling(); }
  // A chunk of the step is computed.
  void OnChunk(int ps, int chunk);
  // A halt is over: what it held back is pushed.
  void EndHalt();
  // Nothing of the step being computed was pushed, and nobody wants it any more.
  void AbandonStep();
  // The round that begins with this version is complete everywhere: what is leased of it is done.
  void OnRoundComplete(uint64_t version);
  // Leases were dropped: has the batches of those that are left prepared.
  void ExpectLeasesAnew();
  void OnComputed(absl::StatusOr<BatchOutcome> outcome);
  // What is pushed of each chunk of a step that comes to nothing.
  void PushNothing();
  void MaybeFinishStep();
  // Reports the steps that are over, when enough have come together.
  void MaybeReportSteps();
  void ReportSteps();
  void PullCut(const EvaluationOrder& order);
  void Evaluate(const EvaluationOrder& order);
  // It is draining, does nothing that counts, has reported all that it has done, and no lease is on
  // its way here: one that came too late would be a hole below what others have done, which nobody
  // fills where all leave at once.
  bool MayLeave() const {
    return draining_ && !preparing_ && activity_ != Activity::kTraining && leases_.empty() &&
           (welcomed_ ? no_more_leases_ : unreported_.steps_size() == 0);
  }
  void SendDraining();
  void SendLeaving(const absl::Status& why);
  // Tells the coordinator, then ends.
  void Leave(const absl::Status& why);
  void FinishLeaving();
  void Over(End end, const absl::Status& status);
  // The cluster has another job or other ps now: only another start takes them. A worker that is to
  // leave has nothing left to do.
  void OverOfOtherCluster(const std::string& why);

  const Options options_;
  std::unique_ptr<Stream> stream_;
  Backoff backoff_;
  Timer retry_{options_.loop};
  Timer watch_{options_.loop};
  Time activity_began_{};
  WorkerFigures figures_;
  InputWaitShare input_wait_share_;
  std::string last_error_;  // of the stream to the coordinator
  bool refused_ = false;    // last_error_ is the coordinator's: not now
  Time alone_since_{};      // without a stream to the coordinator
  bool lost_ = false;       // it was there, and it was said that it is not any more
  bool welcomed_ = false;
  Time welcomed_at_{};  // over this stream; 0 before

  std::optional<uint32_t> index_;
  std::vector<std::string> ps_;
  uint32_t job_fingerprint_ = 0;  // of the job that is prepared, as is ps_
  bool preparing_ = false;
  std::optional<StepComputer::Prepared> prepared_;
  std::unique_ptr<ParameterExchange> exchange_;

  uint64_t timeline_ = 0;
  uint64_t work_ = 0;  // rises when all that is going on is dropped
  std::deque<LeasedStep> leases_;
  bool halted_ = false;  // begins none of them
  // All steps of this timeline that were begun, of which something may have been pushed, are below.
  uint64_t begun_below_ = 0;
  std::deque<EvaluationOrder> evaluations_;
  Activity activity_ = Activity::kIdle;
  // Whom the pull under way is for; none: for nobody any more.
  std::optional<LeasedStep> pulled_for_;
  bool computing_ = false;  // the computer is busy, perhaps with something that was dropped
  // They hold this timeline and this worker's last push, or were pulled for the next step.
  bool parameters_fresh_ = false;
  // They are of this version of the timeline, on every chunk; none: it is not known.
  std::optional<uint64_t> parameters_version_;
  uint64_t cut_here_ = 0;                       // step of the cut in cut_parameters; 0 = none
  uint64_t step_ = 0;                           // the one being trained
  std::optional<BatchOutcome> outcome_;         // of step_, once computed
  bool step_applied_ = false;                   // on every ps
  std::vector<std::pair<int, int>> held_back_;  // chunks of it by ps, by a halt before the first
  proto::StepsDone unreported_;
  Timer report_due_{options_.loop};  // while there are some and a coordinator

  bool draining_ = false;
  bool no_more_leases_ = false;  // as the coordinator has said over this stream
  std::string drain_reason_;
  Time no_step_after_{};  // begins, once draining
  Timer drain_deadline_{options_.loop};
  bool over_ = false;
  // Set by Leave: how to end once the coordinator has closed the stream.
  std::optional<std::pair<End, absl::Status>> leaving_;
  Timer leave_deadline_{options_.loop};
  const Scope scope_{options_.loop};
};

}  // namespace shoal
