#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"
#include "common/run/run_paths.h"
#include "coordinator/steps/membership.h"
#include "coordinator/steps/step_scheduler.h"
#include "coordinator/takeover/ps_fleet.h"
#include "coordinator/takeover/run_lock.h"

namespace shoal {

// The end of a run (section 8 of the protocol): saves the model, then dismisses the workers, the
// ps, and the evaluator once it has evaluated the last checkpoint. Releases the run lock only after
// all files are on disk.
//
//   working ── Save ──▶ saving ── saved ──▶ dismissing workers ── gone, ──▶ dismissing ps
//     │ └─ Fail, BreakOff ─┼─────────────────────▲                or 5 s       │ gone, or 5 s
//     │                    │                                      dismissing the evaluator
//     │                    │                                                  │ gone
//     │                    └─ Over, not saved ──────── Over ─────────────────▶ over
//     └─────── Over ─────▶ broken off
//
// After BreakOff the ps stay, so that step is skipped. No threads of its own; loop thread only; the
// model is written in Offload.
class Shutdown {
 public:
  enum class Phase {
    kWorking,
    kSaving,
    kDismissingWorkers,
    kDismissingPs,
    kDismissingEvaluator,
    kOver,
    kBrokenOff
  };
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    FileSystem* files = nullptr;
    Membership* membership = nullptr;
    StepScheduler* scheduler = nullptr;
    PsFleet* fleet = nullptr;
    RunLock* lock = nullptr;
    RunPaths paths;
    std::string average_slot;  // see ExportModel
    // Lets the evaluator finish and go; OnEvaluatorGone follows. `failure` is empty if the job is
    // done. Null: the run never has an evaluator.
    std::function<void(const std::string& failure)> dismiss_evaluator;
    // Called once, when the outcome is known and final.
    std::function<void(const absl::Status&)> on_outcome;
    // Returns the files of the run that are not complete on disk, and why, for people. Empty if all
    // are complete. OnWritten follows each write.
    std::function<std::vector<std::string>()> owed;
    // The last call: all files are on disk, or the wait for them timed out.
    std::function<void(const absl::Status&)> on_over;
  };
  explicit Shutdown(Options options);

  Phase phase() const { return phase_; }
  bool working() const { return phase_ == Phase::kWorking; }
  bool over() const { return phase_ == Phase::kOver || phase_ == Phase::kBrokenOff; }
  // True while the job itself has ended: losing a process is no longer a problem.
  bool job_ended() const { return !working() && phase_ != Phase::kBrokenOff; }
  // Why the job has failed, for people; empty if it has not.
  const std::string& failure() const { return failure_; }

  struct Result {
    StoredCheckpoint values;               // for the model; all its values are finite
    std::optional<StoredCheckpoint> last;  // the last checkpoint of the training
    // A former coordinator wrote it. Waits for that one's workers too, to tell them the end.
    bool found = false;
  };
  // Training is done: saves the model and ends the job. Requires working().
  void Save(const Result& result);
  // Ends the job without a model. The ps go too, so that the next start loads a checkpoint.
  // Requires working().
  void Fail(const std::string& why);
  // This coordinator cannot go on. If it leads the run, and a restart would end in the same way,
  // tells the workers and the evaluator so first. Otherwise they would look for it, with one
  // restart after the other. The ps stay. In all other cases, and in any other phase than working,
  // the same as Over.
  void BreakOff(const absl::Status& status);
  // Ends at once, in any phase, and only waits for files. No effect if it is over. A failure that
  // BreakOff has told stays the outcome.
  void Over(const absl::Status& status);

  // A worker is gone. Requires that the run is not working.
  void OnWorkerGone();
  // A ps ends, dismissed or not.
  void OnPsStopping(int ps);
  void OnEvaluatorGone();
  // A stop was requested: ends now if only the evaluator is pending.
  void OnStop();
  // A file of the run may be complete on disk, see Options::owed.
  void OnWritten();

 private:
  // Changes the phase. No worker gets work once it leaves kWorking.
  void Enter(Phase phase);
  void DismissWorkers();
  void DismissPs();
  void DismissEvaluator();
  void KeepOutcome();
  void EndAfterWrites();

  const Options options_;
  Phase phase_ = Phase::kWorking;
  bool found_ = false;
  bool ps_stay_ = false;                     // since BreakOff
  std::optional<absl::Status> job_outcome_;  // of the job, once workers may go
  std::string failure_;
  absl::Status outcome_;            // for on_over
  bool ends_after_writes_ = false;  // EndAfterWrites was called
  std::set<int> stopping_ps_;       // the ps that answered Stop
  Timer dismiss_deadline_{options_.loop};
  Timer over_deadline_{options_.loop};  // until on_over
  const Scope scope_{options_.loop};
};

}  // namespace shoal
