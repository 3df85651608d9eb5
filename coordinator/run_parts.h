#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/job/job.h"
#include "common/model/keras_model.h"
#include "common/optimizer/optimizer.h"
#include "common/rpc/network.h"
#include "common/run/run_paths.h"
#include "common/sharding/shard_map.h"
#include "common/step_plan/round_plan.h"
#include "common/step_plan/step_plan.h"
#include "coordinator/cuts/checkpointer.h"
#include "coordinator/cuts/cut_plan.h"
#include "coordinator/cuts/drain_checkpoint.h"
#include "coordinator/evaluator/checkpoint_evaluation.h"
#include "coordinator/nan_watch.h"
#include "coordinator/operators/operator_requests.h"
#include "coordinator/run/progress.h"
#include "coordinator/run/run_history.h"
#include "coordinator/run/shutdown.h"
#include "coordinator/steps/membership.h"
#include "coordinator/steps/step_scheduler.h"
#include "coordinator/takeover/ps_fleet.h"
#include "coordinator/takeover/run_lock.h"
#include "proto/evaluator.pb.h"

namespace shoal {

struct RunOptions {
  EventLoop* loop = nullptr;  // these outlive the run
  Network* network = nullptr;
  FileSystem* files = RealFileSystem();
  Job job;
  std::string coordinator_address;  // for workers
  bool tls = false;                 // workers need a --tls_dir
  std::vector<std::string> ps_addresses;
  std::set<int> listed_workers;
  bool lists_evaluator = false;
  std::string run_dir;                                      // absolute; ps may see it or not
  uint32_t coordinator_id = 0;                              // random
  LeaseHolder holder;                                       // this process, without its address
  std::string run_id;                                       // of run_dir; empty: it has none
  bool take_over = false;                                   // take the ps away from another run too
  std::function<bool(const std::string& process)> is_gone;  // these two: see RunLock::Options
  std::function<void()> on_lead;
  // Called once, when the run is over. OK: the job is done. kCancelled: stopped by Stop. Other
  // errors: the job failed.
  std::function<void(const absl::Status&)> on_over;
};

// Why a run must end before its job is done.
struct RunFailure {
  absl::Status status;
  bool ends_ps = false;  // the ps go too, so that the next start loads a checkpoint
};

// A timeline that this coordinator gives up, and what the ps must do.
struct AbandonedTimeline {
  enum class Remedy { kClaimAgain, kRestore };  // see PsFleet
  uint64_t timeline = 0;
  std::string why;
  Remedy remedy = Remedy::kClaimAgain;
};

// All parts of one run, and the facts that they have reported. TrainingRun makes the parts.
// RunTimeline, WorkerReports and RecordOutcomes record the facts, Reconciler decides from them, and
// RunView shows them. Loop thread only.
struct RunParts {
  // Requires a job whose strategy is resolved. The parts behind pointers are null until TrainingRun
  // makes them.
  explicit RunParts(RunOptions run_options);

  // The open timeline; 0 without one.
  uint64_t timeline() const { return opened.has_value() ? opened->timeline : 0; }
  // The run takes work: it is not ending, and no failure waits for the next turn to end it.
  bool working() const { return shutdown->working() && !failure.has_value(); }
  // Keeps why the run must end, and leases no step from now on. The next turn ends the run. Of
  // several failures the first counts, except that kAborted (fenced off) counts before all others.
  void Fail(RunFailure why);
  // The open timeline leases steps.
  bool training() const { return scheduler->begun(); }
  // The job has callbacks, and they need test results. No step of an epoch begins before they have
  // decided that training continues.
  bool awaits_results() const { return !options.job.callbacks.empty() && test_examples > 0; }
  // The batches of the test set. Requires a test set.
  StepPlan TestBatches() const {
    return {test_examples, static_cast<uint64_t>(options.job.batch_size), /*epochs=*/1,
            /*steps=*/0};
  }
  // Returns whether the checkpoint is at the end of an epoch without a test result yet.
  bool LacksResult(const StoredCheckpoint& checkpoint) const;
  // kInvalidArgument: the evaluator sees another test set than the workers.
  absl::Status CheckTestSet(const proto::EvaluatorReady& ready) const;
  // Returns whether a result of this checkpoint can be kept now.
  bool MayBeEvaluated(const StoredCheckpoint& checkpoint) const;
  // Returns the current state of the steps. Requires an open timeline.
  CutPlan::Steps StepsNow() const;
  // Adds the results of all complete rounds to the progress.
  void CountRounds();

  const RunOptions options;
  const std::string job_text;
  const uint32_t fingerprint;  // of the job
  KerasModel model;
  std::unique_ptr<const Optimizer> optimizer;      // the ps apply it
  std::unique_ptr<const Optimizer> job_optimizer;  // the same, except with the strategy local
  std::unique_ptr<ShardMap> shard_map;
  CheckpointLayout layout;
  const RunPaths paths;
  CheckpointStore store;  // used in Offload only
  const Time started;

  // Each part uses only parts above it.
  Progress progress;
  std::unique_ptr<RunLock> lock;
  std::unique_ptr<PsFleet> fleet;
  std::unique_ptr<Membership> membership;
  std::unique_ptr<StepScheduler> scheduler;
  std::unique_ptr<RunHistory> history;
  std::unique_ptr<CheckpointEvaluation> evaluator;
  std::unique_ptr<Checkpointer> checkpointer;
  std::unique_ptr<NanWatch> nan_watch;
  std::unique_ptr<Shutdown> shutdown;
  std::unique_ptr<DrainCheckpoint> drain;
  std::unique_ptr<OperatorRequests> requests;

  // For the number of examples in the run's newest checkpoint, otherwise from the first worker.
  std::optional<StepPlan> plan;
  std::optional<RoundPlan> rounds;  // set for sync
  uint64_t test_examples = 0;       // known once `plan` is
  std::string counts_source;        // of both: a worker's name, or a checkpoint's directory
  bool worker_came = false;         // a worker was ready: every timeline leases steps from now on
  // The checkpoints that were on disk at the start, newest first, and the time of that.
  std::vector<StoredCheckpoint> stored;
  Time stored_at{};
  std::optional<PsFleet::Opened> opened;  // the open timeline
  std::optional<CutPlan> cuts;            // its cuts; kept when it is over
  bool drain_cut = false;                 // the newest cut is that of `drain`
  // Steps that were reported but never applied. The sums of their epoch include them already, so
  // they do not count again when they are done.
  std::set<uint64_t> counted;
  std::set<StepDispatcher::WorkerKey> reported;  // workers with a report since the last turn
  std::optional<RunFailure> failure;             // since the last turn, see Fail
  // Since the last turn, see RunTimeline::Abandon. The parts have no open timeline any more.
  std::optional<AbandonedTimeline> abandoned;

  struct Counters {
    uint64_t timelines_opened = 0;
    uint64_t steps_done = 0;
    uint64_t examples = 0;
  };
  Counters counters;  // since the start
};

}  // namespace shoal
