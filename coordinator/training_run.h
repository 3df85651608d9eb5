#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/metrics/metric_samples.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "coordinator/reconciler.h"
#include "coordinator/run_parts.h"
#include "coordinator/run_timeline.h"
#include "coordinator/run_view.h"
#include "coordinator/worker_reports.h"
#include "proto/cluster.pb.h"

namespace shoal {

// The training of one job, from the first claim to the saved model. It makes the parts of the run
// (RunParts) and connects them. RunTimeline, WorkerReports and RecordOutcomes record the facts that
// the parts report. Reconciler then decides what follows.
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
  // Returns OK while the run takes work. kFailedPrecondition: it is stopping, or over; the message
  // says which, in a line.
  absl::Status CheckReady() const;
  // The steps of the open timeline; null without one.
  const StepDispatcher* dispatcher() const {
    return parts_.scheduler->open() ? &parts_.scheduler->steps() : nullptr;
  }
  // The workers that have come, by index.
  const std::map<int, Membership::Record>& workers() const { return parts_.membership->records(); }
  // The open timeline; 0 without one.
  uint64_t timeline() const { return parts_.timeline(); }

 private:
  // Requires a job whose strategy is resolved.
  explicit TrainingRun(Options options);
  // Reads the model and makes the parts. Returns an error if the model cannot be read.
  absl::Status Prepare();
  // Returns the max number of file ranges that all ps together write for a cut.
  uint64_t MaxWrittenRanges() const;
  void MakePs();
  void MakeWorkers();
  void MakeCheckpoints();
  void MakeEvaluator();
  void MakeEnd();
  // The manifest fields that all checkpoints of this job share.
  Manifest ManifestOfJob() const;
  // The text files of every checkpoint of this job: name -> content.
  std::map<std::string, std::string> TextsOfJob() const;

  void OnPsReply(int ps, const proto::ControlReply& reply);
  // A part cannot go on. The next turn ends the run.
  void KeepFailure(const absl::Status& status);
  void Tick();
  void LogWaiting(Time now);
  // Returns a view of the run now.
  RunView View() const;

  Wakeup wakeup_;  // the parts raise it
  RunParts parts_;
  Reconciler reconciler_;
  RunTimeline timeline_;
  WorkerReports reports_;
  Time log_waiting_at_{};  // 0 while the run waits for nothing
  Timer tick_;
};

}  // namespace shoal
