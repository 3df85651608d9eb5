#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/job/job.h"
#include "common/metrics/metric_samples.h"
#include "common/model/keras_model.h"
#include "common/optimizer/optimizer.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "common/run/run_paths.h"
#include "common/sharding/shard_map.h"
#include "common/step_plan/round_plan.h"
#include "common/step_plan/step_plan.h"
#include "coordinator/cuts/checkpointer.h"
#include "coordinator/cuts/cut_plan.h"
#include "coordinator/cuts/drain_checkpoint.h"
#include "coordinator/evaluator/checkpoint_evaluation.h"
#include "coordinator/operators/operator_requests.h"
#include "coordinator/operators/run_view.h"
#include "coordinator/run/progress.h"
#include "coordinator/run/run_history.h"
#include "coordinator/run/shutdown.h"
#include "coordinator/steps/membership.h"
#include "coordinator/steps/step_scheduler.h"
#include "coordinator/takeover/first_checkpoint.h"
#include "coordinator/takeover/ps_fleet.h"
#include "coordinator/takeover/run_lock.h"
#include "proto/cluster.pb.h"

namespace shoal {

// The training of one job, from the first claim to the saved model. Connects its parts: the workers
// (Membership), their work (StepScheduler), the ps (PsFleet), the checkpoints (CutPlan,
// Checkpointer), the results (Progress, RunHistory, CheckpointEvaluation), the checkpoint before a
// stop (DrainCheckpoint), the end (Shutdown), and operators (OperatorRequests, RunView). This class
// holds only what one part must know of the others.
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
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    Network* network = nullptr;
    FileSystem* files = RealFileSystem();
    Job job;
    std::string chief_address;  // of this coordinator, for workers
    std::vector<std::string> ps_addresses;
    std::set<int> listed_workers;
    bool lists_evaluator = false;
    std::string run_dir;          // absolute; ps may see it or not
    uint32_t coordinator_id = 0;  // random
    LeaseHolder holder;           // this process, without its address
    std::string run_id;           // of run_dir; empty: it has none
    bool take_over = false;       // take the ps away from another run too
    std::function<bool(const std::string& process)> is_gone;  // these two: see RunLock::Options
    std::function<void()> on_lead;
    // Called once, when the run is over. OK: the job is done. kCancelled: stopped by Stop. Other
    // errors: the job failed.
    std::function<void(const absl::Status&)> on_over;
  };
  // Returns an error if the model cannot be read.
  static absl::StatusOr<std::unique_ptr<TrainingRun>> Create(Options options);
  ~TrainingRun();

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
    return handout_->open() ? &handout_->steps() : nullptr;
  }
  // The open timeline; 0 without one.
  uint64_t timeline() const { return opened_.has_value() ? opened_->timeline : 0; }

 private:
  // Requires a job whose strategy is resolved.
  explicit TrainingRun(Options options);
  // Reads the model and makes the parts, in the order of the members.
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
  void TakeCounts(const ExampleCounts& counts, const std::string& counted_by);
  void OnTimelineOpened(const PsFleet::Opened& opened);
  void OnTimelineOver(const std::string& why);
  void OnPsReply(int ps, const proto::ControlReply& reply);
  void OnJobFinished(const RunEnd& end);
  // Callbacks of Membership.
  void OnWorkerReady(Worker& worker, const proto::WorkerReady& ready);
  void OnWorkerReport(Worker& worker, const proto::WorkerReport& report);
  void OnWorkerGone(Worker& worker, const std::string& why);
  void OnStepsDone(Worker& worker, const proto::StepsDone& done);
  // kInvalidArgument: no worker of this job and its data can report this result.
  template <typename Result>
  absl::Status CheckResult(const Result& result, const std::string& what, uint64_t examples) const;
  absl::Status CheckStep(const proto::StepDone& step) const;
  absl::Status CheckBatch(const proto::EvaluationDone& done) const;
  // The batches of the test set. Requires a test set.
  StepPlan TestBatches() const {
    return {test_examples_, static_cast<uint64_t>(options_.job.batch_size), /*epochs=*/1,
            /*steps=*/0};
  }
  // Adds the results of a step that was not done before to the progress.
  void CountStep(const proto::StepDone& step);
  void OnEvaluationDone(Worker& worker, const proto::EvaluationDone& done);
  // Callbacks of CheckpointEvaluation.
  // kInvalidArgument: the evaluator sees another test set than the workers.
  absl::Status CheckTestSet(const proto::EvaluatorReady& ready) const;
  bool MayBeEvaluated(const StoredCheckpoint& checkpoint) const;
  // Returns whether the checkpoint is at the end of an epoch without a test result yet.
  bool LacksResult(const StoredCheckpoint& checkpoint) const;
  void OnCheckpointEvaluated(const StoredCheckpoint& checkpoint,
                             const CheckpointEvaluation::Options::Sums& sums);
  // Opens reported steps again that a ps has not applied, and rejects the workers that reported
  // them.
  void CompareWithPs(int ps, const proto::Claimed& claimed);
  // Callbacks of Checkpointer.
  void OnCutAccepted(uint64_t step);
  void OnCutReady(uint64_t step);
  void OnCommitted(const StoredCheckpoint& checkpoint);
  void OnCutGivenUp(uint64_t step, const std::string& why, std::optional<uint64_t> highest_step);

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
  // Plans, and offers work to all workers. Call it after every change that may affect the plan.
  void Advance();
  // Closes epochs, begins cuts and sets how far leases may go. Returns false if no work can be
  // leased.
  bool Plan();
  // Adds the results of the done rounds to the progress.
  void CountRounds();
  void PlanCut();
  void BeginCut(const CutPlan::Cut& cut);
  CutPlan::Steps Steps() const;
  void Tick();
  void LogWaiting(Time now);
  // Checks the loss of a new step. Logs the first one that is not finite, and ends the run after
  // too many in a row.
  void NoteLoss(uint64_t step, double loss_sum, const Worker& worker);
  // Returns advice for values that are not finite, and the checkpoint to continue from.
  std::string AfterNan() const;
  void FinishEvaluation();
  // The job has callbacks, and they need test results. No step of an epoch begins before they have
  // decided that training goes on.
  bool awaits_results() const { return !options_.job.callbacks.empty() && test_examples_ > 0; }
  // The epoch's result and checkpoint exist; only history.csv may lag. Reports of the epoch's last
  // steps may still be on the way.
  bool HasAllToDecide() const;
  // The decision only lacks the result of the newest checkpoint, and the evaluator will bring it.
  bool EvaluatorDecides() const;
  // The evaluator handles the epoch's end: the next cut there need not be held for the workers.
  bool LeftToEvaluator() const;
  // Runs the callbacks on the content of the disk; OnDecided follows.
  void Decide();
  void OnDecided();
  // `found`: the result is a former coordinator's.
  void SaveModel(const StoredCheckpoint& result, bool found = false);
  // The variables have become useless: fails the run. The ps go too, so that the next start loads a
  // checkpoint.
  void EndForNan(const std::string& why);
  bool training() const { return handout_->begun(); }

  // Returns a view of the run now.
  RunView View() const;

  // Returns the requirements on a checkpoint that is requested now, or why there will be none.
  absl::StatusOr<OperatorRequests::Wanted> WantedNow() const;

  Options options_;
  std::string job_text_;
  uint32_t fingerprint_ = 0;
  KerasModel model_;
  std::unique_ptr<const Optimizer> optimizer_;      // the ps apply it
  std::unique_ptr<const Optimizer> job_optimizer_;  // the same, except with the strategy local
  std::unique_ptr<ShardMap> shard_map_;
  CheckpointLayout layout_;
  const RunPaths paths_;
  CheckpointStore store_;  // used in Offload only
  Time started_{};

  // Each part uses only parts above it.
  Progress progress_;
  std::unique_ptr<RunLock> lease_;
  std::unique_ptr<PsFleet> fleet_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<StepScheduler> handout_;
  std::unique_ptr<RunHistory> history_;
  std::unique_ptr<CheckpointEvaluation> evaluator_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<Shutdown> ending_;
  std::unique_ptr<DrainCheckpoint> closing_;
  std::unique_ptr<OperatorRequests> requests_;

  // For the number of examples in the run's newest checkpoint, otherwise from the first worker.
  std::optional<StepPlan> plan_;
  std::optional<RoundPlan> rounds_;  // set for sync
  uint64_t test_examples_ = 0;       // known once plan_ is
  std::string counted_by_;           // the source of the counts
  bool worker_came_ = false;         // a worker was ready: every timeline leases steps from now on
  // The checkpoints that were on disk at the start, newest first, and the time of that.
  std::vector<StoredCheckpoint> stored_;
  Time stored_at_{};
  std::optional<PsFleet::Opened> opened_;  // the open timeline
  std::optional<CutPlan> cuts_;            // its cuts; kept when it is over
  bool drain_checkpoint_ = false;          // the newest cut is that of closing_
  // Steps that were reported but never applied. The sums of their epoch include them already, so
  // they do not count again when they are done.
  std::set<uint64_t> counted_;

  RunView::Counters counters_;  // since the start
  bool warned_of_loss_ = false;
  uint64_t nan_steps_ = 0;  // steps in a row with a loss that is not finite

  Timer tick_{options_.loop};
  Time log_waiting_at_{};  // 0 while nobody is waited for
};

}  // namespace shoal
