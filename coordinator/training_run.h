#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/metrics/metric_samples.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "coordinator/operators/run_view.h"
#include "coordinator/reconciler.h"
#include "coordinator/run_parts.h"
#include "coordinator/steps/report_check.h"
#include "proto/cluster.pb.h"

namespace shoal {

// The training of one job, from the first claim to the saved model. It makes the parts of the run
// (RunParts) and receives the facts that they report: a timeline is open, a worker has done a step,
// a cut is written. It checks and records each fact; Reconciler then decides what follows.
//
//   waiting ── timeline open, examples counted ──▶ training ──▶ ending (Shutdown)
//      ▲                                             │
//      └───────────────── timeline over ─────────────┘
//
// A coordinator that took over live ps also waits until a worker has come. It keeps what is applied
// all the same: a stop, a ps that leaves and `shoal checkpoint now` get their cut.
//
// State machine over loop and network, without threads of its own; every call on the loop's thread.
class TrainingRun {
 public:
  using Options = RunOptions;
  // Errors are those of the model.
  static absl::StatusOr<std::unique_ptr<TrainingRun>> Create(Options options);

  void Start();
  // For Network::Listen: Work streams and those of the Cluster service.
  absl::StatusOr<StreamCallbacks> Accept(const std::string& method, std::unique_ptr<Stream> stream);
  // An orderly stop: no more leases, a checkpoint when the leased steps are done, then
  // on_over(kCancelled).
  void Stop();

  proto::StatusReply Status() const { return View().Status(); }
  // Its figures for Prometheus.
  void Collect(MetricSamples* out) const { View().Collect(out); }
  // Why it takes no more work, in a line; empty while it does.
  std::string NotReady() const;
  // The steps of the open timeline; null while there is none.
  const StepDispatcher* dispatcher() const {
    return parts_.scheduler->open() ? &parts_.scheduler->steps() : nullptr;
  }
  // The open timeline; 0 without one.
  uint64_t timeline() const { return parts_.timeline(); }

 private:
  // The job of `options` says all of its strategy.
  explicit TrainingRun(Options options);
  // Reads the model and makes the parts, in the order of RunParts.
  absl::Status Prepare();
  // The most ranges of files that all ps together write for a cut.
  uint64_t MostWrittenRanges() const;
  void MakePs();
  void MakeWorkers();
  void MakeCheckpoints();
  void MakeEvaluator();
  void MakeEnd();
  // What every checkpoint of this job says, and has beside it by name.
  Manifest ManifestOfJob() const;
  std::map<std::string, std::string> TextsOfJob() const;

  // PsFleet.
  void OnStored(const std::vector<StoredCheckpoint>& newest_first);
  struct ExampleCounts {
    uint64_t training = 0;
    uint64_t test = 0;
  };
  void TakeCounts(const ExampleCounts& counts, const std::string& counted_by);
  void OnTimelineOpened(const PsFleet::Opened& opened);
  void OnTimelineOver(const std::string& why);
  void OnPsReply(int ps, const proto::ControlReply& reply);
  void OnJobFinished(const RunEnd& end);
  // Membership.
  void OnWorkerReady(Worker& worker, const proto::WorkerReady& ready);
  void OnWorkerReport(Worker& worker, const proto::WorkerReport& report);
  void OnWorkerGone(Worker& worker, const std::string& why);
  void OnStepsDone(Worker& worker, const proto::StepsDone& done);
  ReportCheck Check() const;
  // What a step that was not done before says for itself.
  void CountStep(const proto::StepDone& step);
  void OnEvaluationDone(Worker& worker, const proto::EvaluationDone& done);
  // CheckpointEvaluation.
  // kInvalidArgument: it sees another test set than the workers.
  absl::Status CheckTestSet(const proto::EvaluatorReady& ready) const;
  bool MayBeEvaluated(const StoredCheckpoint& checkpoint) const;
  void OnCheckpointEvaluated(const StoredCheckpoint& checkpoint,
                             const CheckpointEvaluation::Options::Sums& sums);
  // Steps that were reported and that a ps has not applied are leased again, and whoever reported
  // them is not believed any more.
  void CompareWithPs(int ps, const proto::Claimed& claimed);
  // Checkpointer.
  void OnCutAccepted(uint64_t step);
  void OnCutReady(uint64_t step);
  void OnCommitted(const StoredCheckpoint& checkpoint);
  void OnCutGivenUp(uint64_t step, const std::string& why, std::optional<uint64_t> highest_step);

  // Tells a worker of the open timeline.
  void Announce(Worker& worker);
  // What is known of the steps of the open timeline: those that were applied when it was opened,
  // and how many there are, where that is known.
  void LayOutSteps();
  // The job cannot be done from the first step that is to be done; why.
  absl::Status CheckPlan() const;
  // Where the schedule of checkpoints stands in the open timeline.
  CutPlan::Last LastCut() const;
  // The newest of what was on disk that has no step above the base of the open timeline: what is
  // above may be of a timeline that this one has replaced. Null: there is none.
  const StoredCheckpoint* NewestStored() const;
  // The newest of this timeline, or the newest stored, that is known; null: there is none.
  const StoredCheckpoint* NewestBelowBase() const;
  // Begins to hand out steps; timeline and plan are known.
  void BeginTraining();
  // Nobody trains here yet: what the ps have applied counts.
  void TakeApplied();
  void Tick();
  void LogWaiting(Time now);
  void FinishEvaluation();
  // How it stands now.
  RunView View() const;

  // What a checkpoint has to hold that is asked for now, or why there will be none.
  absl::StatusOr<OperatorRequests::Wanted> WantedNow() const;

  RunParts parts_;
  Reconciler reconciler_;
  Time log_waiting_at_{};  // 0 while nobody is waited for
  Timer tick_;
};

}  // namespace shoal
