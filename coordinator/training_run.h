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
// a cut is written. It checks and records each fact. Reconciler then decides what follows.
//
//   waiting ── timeline open, examples counted ──▶ training ──▶ ending (Shutdown)
//      ▲                                             │
//      └───────────────── timeline over ─────────────┘
//
// A coordinator that took over live ps also waits for the first worker. But it keeps the applied
// steps meanwhile: a stop, a ps that leaves and `shoal checkpoint now` get their cut.
//
// State machine over loop and network. No threads of its own; loop thread only.
class TrainingRun {
 public:
  using Options = RunOptions;
  // Returns an error if the model cannot be read.
  static absl::StatusOr<std::unique_ptr<TrainingRun>> Create(Options options);

  void Start();
  // For Network::Listen: accepts the streams of workers, the evaluator and the Cluster service.
  absl::StatusOr<StreamCallbacks> Accept(const std::string& method, std::unique_ptr<Stream> stream);
  // Stops in order: leases no more steps, writes a checkpoint when the leased steps are done, then
  // calls on_over(kCancelled).
  void Stop();

  proto::StatusReply Status() const { return View().Status(); }
  // Adds the metrics of the run for Prometheus.
  void Collect(MetricSamples* out) const { View().Collect(out); }
  // Why the run takes no more work, in a line; empty while it does.
  std::string NotReady() const;
  // The steps of the open timeline; null without one.
  const StepDispatcher* dispatcher() const {
    return parts_.scheduler->open() ? &parts_.scheduler->steps() : nullptr;
  }
  // The open timeline; 0 without one.
  uint64_t timeline() const { return parts_.timeline(); }

 private:
  // Requires a job whose strategy is resolved.
  explicit TrainingRun(Options options);
  // Reads the model and makes the parts. Returns an error if the model cannot be read.
  absl::Status Prepare();
  // Returns the max number of file ranges that all ps together write for a cut.
  uint64_t MostWrittenRanges() const;
  void MakePs();
  void MakeWorkers();
  void MakeCheckpoints();
  void MakeEvaluator();
  void MakeEnd();
  // The manifest fields that all checkpoints of this job share.
  Manifest ManifestOfJob() const;
  // The text files of every checkpoint of this job: name -> content.
  std::map<std::string, std::string> TextsOfJob() const;

  // Callbacks of PsFleet.
  void OnStored(const std::vector<StoredCheckpoint>& newest_first);
  struct ExampleCounts {
    uint64_t training = 0;
    uint64_t test = 0;
  };
  // Records the numbers of examples, and the plan that follows from them. `counted_by`: their
  // source, for messages.
  void TakeCounts(const ExampleCounts& counts, const std::string& counted_by);
  void OnTimelineOpened(const PsFleet::Opened& opened);
  void OnTimelineOver(const std::string& why);
  void OnPsReply(int ps, const proto::ControlReply& reply);
  // Callbacks of Membership.
  void OnWorkerReady(Worker& worker, const proto::WorkerReady& ready);
  void OnWorkerReport(Worker& worker, const proto::WorkerReport& report);
  void OnWorkerGone(Worker& worker, const std::string& why);
  void OnStepsDone(Worker& worker, const proto::StepsDone& done);
  ReportCheck Check() const;
  // Adds the results of a step that was not done before to the progress.
  void CountStep(const proto::StepDone& step);
  void OnEvaluationDone(Worker& worker, const proto::EvaluationDone& done);
  // Callbacks of CheckpointEvaluation.
  // kInvalidArgument: the evaluator sees another test set than the workers.
  absl::Status CheckTestSet(const proto::EvaluatorReady& ready) const;
  bool MayBeEvaluated(const StoredCheckpoint& checkpoint) const;
  void OnCheckpointEvaluated(const StoredCheckpoint& checkpoint,
                             const CheckpointEvaluation::Options::Sums& sums);
  // Opens reported steps again that a ps has not applied, and rejects the workers that reported
  // them.
  void CompareWithPs(int ps, const proto::Claimed& claimed);

  // Announces the open timeline to a worker.
  void Announce(Worker& worker);
  // Sets up the steps of the open timeline: those that were applied when it was opened, and their
  // total number, if known.
  void LayOutSteps();
  // Returns an error if the job cannot continue from the first step that is not done.
  absl::Status CheckPlan() const;
  // Returns the cut from which the checkpoint schedule counts in the open timeline.
  CutPlan::Last LastCut() const;
  // Returns the newest checkpoint from disk that holds no step above the base of the open timeline.
  // One above may be of a timeline that this one has replaced. Null if there is none.
  const StoredCheckpoint* NewestStored() const;
  // Returns the newest checkpoint of this timeline that is known, or the newest stored one. Null if
  // there is none.
  const StoredCheckpoint* NewestBelowBase() const;
  // Begins to lease steps. Requires timeline and plan.
  void BeginTraining();
  // Before training begins: takes over the steps that the ps have applied.
  void TakeApplied();
  void Tick();
  void LogWaiting(Time now);
  void FinishEvaluation();
  // Returns a view of the run now.
  RunView View() const;

  // Returns the requirements on a checkpoint that is requested now, or why there will be none.
  absl::StatusOr<OperatorRequests::Wanted> WantedNow() const;

  Wakeup wakeup_;  // the parts raise it
  RunParts parts_;
  Reconciler reconciler_;
  Time log_waiting_at_{};  // 0 while the run waits for nothing
  Timer tick_;
};

}  // namespace shoal
