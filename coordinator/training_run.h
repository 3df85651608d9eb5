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

// The training of one job, from the first claim to the saved model: brings together who computes
// (Membership), who gets which work (StepScheduler), where the variables are (PsFleet), what is
// kept when (CutPlan, Checkpointer), what it has come to (Progress, RunHistory,
// CheckpointEvaluation), what is done before a stop (DrainCheckpoint), the end (Shutdown), and
// what people ask for and are told (OperatorRequests, RunView). What is left here is what one of
// them has to know of the others.
//
//   waiting ── timeline open, examples counted ──▶ training ──▶ ending (Shutdown)
//      ▲                                             │
//      └───────────────── timeline over ─────────────┘
//
// A coordinator that took over live ps waits too until a worker has come, and keeps
// what is applied all the same: a stop, a ps that leaves and `shoal checkpoint now` get their cut.
//
// State machine over loop and network, without threads of its own; every call on the loop's thread.
class TrainingRun {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    Network* network = nullptr;
    FileSystem* files = RealFileSystem();
    Job job;
    std::string chief_address;  // of this coordinator, as workers are told it
    std::vector<std::string> ps_addresses;
    std::set<int> listed_workers;
    bool lists_evaluator = false;
    std::string run_dir;                                      // absolute; ps may see it, or not
    uint32_t coordinator_id = 0;                              // random
    LeaseHolder holder;                                       // this process, but for its address
    std::string run_id;                                       // of run_dir; empty: it has none
    bool take_over = false;                                   // the ps of another run, too
    std::function<bool(const std::string& process)> is_gone;  // as RunLock::Options has them
    std::function<void()> on_lead;
    // The run is over; once. OK: the job is done. kCancelled: stopped by Stop. Else why it failed.
    std::function<void(const absl::Status&)> on_over;
  };
  // Errors are those of the model.
  static absl::StatusOr<std::unique_ptr<TrainingRun>> Create(Options options);
  ~TrainingRun();

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
    return handout_->open() ? &handout_->steps() : nullptr;
  }
  // The open timeline; 0 without one.
  uint64_t timeline() const { return opened_.has_value() ? opened_->timeline : 0; }

 private:
  // The job of `options` says all of its strategy.
  explicit TrainingRun(Options options);
  // Reads the model and makes the parts, in the order of the members.
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
  // kInvalidArgument: what no worker of this job and of its data reports.
  template <typename Result>
  absl::Status CheckResult(const Result& result, const std::string& what, uint64_t examples) const;
  absl::Status CheckStep(const proto::StepDone& step) const;
  absl::Status CheckBatch(const proto::EvaluationDone& done) const;
  // The batches of the test set, which there is.
  StepPlan TestBatches() const {
    return {test_examples_, static_cast<uint64_t>(options_.job.batch_size), /*epochs=*/1,
            /*steps=*/0};
  }
  // What a step that was not done before says for itself.
  void CountStep(const proto::StepDone& step);
  void OnEvaluationDone(Worker& worker, const proto::EvaluationDone& done);
  // CheckpointEvaluation.
  // kInvalidArgument: it sees another test set than the workers.
  absl::Status CheckTestSet(const proto::EvaluatorReady& ready) const;
  bool MayBeEvaluated(const StoredCheckpoint& checkpoint) const;
  // It is at the end of an epoch that has no result on the test set yet.
  bool LacksResult(const StoredCheckpoint& checkpoint) const;
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
  // After anything that may have changed what is to be done: plans, and offers work to everybody.
  void Advance();
  // Closes epochs, begins cuts, says how far leases may go; false when there is no more to give.
  bool Plan();
  // What has come of the rounds that are done counts.
  void CountRounds();
  void PlanCut();
  void BeginCut(const CutPlan::Cut& cut);
  CutPlan::Steps Steps() const;
  void Tick();
  void LogWaiting(Time now);
  // A new step's loss: says when it is not finite, and ends the run after too many of them.
  void NoteLoss(uint64_t step, double loss_sum, const Worker& worker);
  // What to do where values are not finite, and which checkpoint there is to go on from.
  std::string AfterNan() const;
  void FinishEvaluation();
  // The job has callbacks: no step of the next epoch begins before it is decided whether there is
  // to be one.
  bool awaits_results() const { return !options_.job.callbacks.empty() && test_examples_ > 0; }
  // Whether there is can be decided, history.csv apart: the epoch's result and its checkpoint are
  // there, though a report of its last steps may yet be on its way.
  bool HasAllToDecide() const;
  // What is missing for it is the result of the newest checkpoint, which the evaluator brings.
  bool EvaluatorDecides() const;
  // The next cut at an epoch's end need not be held for the workers.
  bool LeftToEvaluator() const;
  // Has it decided from what is on disk.
  void Decide();
  void OnDecided();
  // `found`: by a former coordinator.
  void SaveModel(const StoredCheckpoint& result, bool found = false);
  // The variables have become useless: the run fails, and the ps go too, so that the next start
  // loads a checkpoint.
  void EndForNan(const std::string& why);
  bool training() const { return handout_->begun(); }

  // How it stands now.
  RunView View() const;

  // What a checkpoint has to hold that is asked for now, or why there will be none.
  absl::StatusOr<OperatorRequests::Wanted> WantedNow() const;

  Options options_;
  std::string job_text_;
  uint32_t fingerprint_ = 0;
  KerasModel model_;
  std::unique_ptr<const Optimizer> optimizer_;      // what the ps apply
  std::unique_ptr<const Optimizer> job_optimizer_;  // the same, but under the strategy local
  std::unique_ptr<ShardMap> shard_map_;
  CheckpointLayout layout_;
  const RunPaths paths_;
  CheckpointStore store_;  // used in Offload only
  Time started_{};

  // Each knows of those above it at most.
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

  // Of as many examples as the run's newest checkpoint says, or else the first worker.
  std::optional<StepPlan> plan_;
  std::optional<RoundPlan> rounds_;  // of sync
  // Known with it; and who said so.
  uint64_t test_examples_ = 0;
  std::string counted_by_;
  bool worker_came_ = false;  // one that was ready: steps are handed out in each timeline
  // What there was on disk at the start, newest first; and when that was.
  std::vector<StoredCheckpoint> stored_;
  Time stored_at_{};
  std::optional<PsFleet::Opened> opened_;  // the open timeline
  std::optional<CutPlan> cuts_;            // and its cuts; stays when it is over
  bool drain_checkpoint_ = false;          // the cut begun last is that of closing_
  // Steps that were reported and never applied: the figures of their epoch include them, so they do
  // not count once more when they are done.
  std::set<uint64_t> counted_;

  RunView::Counters counters_;  // since the start
  bool warned_of_loss_ = false;
  uint64_t nan_steps_ = 0;  // with a loss that is not finite, in a row

  Timer tick_{options_.loop};
  Time log_waiting_at_{};  // 0 while nobody is waited for
};

}  // namespace shoal
