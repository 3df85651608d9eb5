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
#include "coordinator/takeover/ps_fleet.h"
#include "coordinator/takeover/run_lock.h"

namespace shoal {

// How a run ends (section 8 of the protocol): the model is saved, the workers go, the ps go after
// them, the evaluator goes when it has evaluated the last checkpoint, and what is being written is
// on disk before the lease is given back.
//
//   working ── Save ──▶ saving ── saved ──▶ dismissing workers ── gone, ──▶ dismissing ps
//     │ └────── Fail ──────┼─────────────────────▲                or 5 s       │ gone, or 5 s
//     │                    │                                      dismissing the evaluator
//     │                    │                                                  │ gone
//     │                    └─ Over, not saved ──────── Over ─────────────────▶ over
//     └─────── Over ─────▶ broken off
//
// No threads of its own; loop thread only; the model is written in Offload.
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
    PsFleet* fleet = nullptr;
    RunLock* lease = nullptr;
    RunPaths paths;
    std::string average_slot;  // as ExportModel has it
    // The run is not working any more; once.
    std::function<void()> on_ending;
    // Has the evaluator do what is left to it and go; OnEvaluatorGone follows, perhaps at once. The
    // failure is empty where the job is done. None: there never is one.
    std::function<void(const std::string& failure)> dismiss_evaluator;
    // How it ends is known, and changes no more; once.
    std::function<void(const absl::Status&)> on_outcome;
    // Files of the run that lack something on disk, and why, for people; OnWritten follows each
    // write. Empty: all is there.
    std::function<std::vector<std::string>()> owed;
    // All is on disk, or was waited for long enough; the last call.
    std::function<void(const absl::Status&)> on_over;
  };
  explicit Shutdown(Options options);

  Phase phase() const { return phase_; }
  bool working() const { return phase_ == Phase::kWorking; }
  bool over() const { return phase_ == Phase::kOver || phase_ == Phase::kBrokenOff; }
  // Nothing was left to do but this: who goes is not missed.
  bool job_ended() const { return !working() && phase_ != Phase::kBrokenOff; }
  // The job cannot be done, for people; empty while it may.
  const std::string& failure() const { return failure_; }

  struct Result {
    StoredCheckpoint values;               // what the model is made of, and all of it is finite
    std::optional<StoredCheckpoint> last;  // all that was trained
    // By a former coordinator: workers that have not come yet are told to go when they do.
    bool found = false;
  };
  // Nothing is left to do but this. Only while working, as Fail.
  void Save(const Result& result);
  // The job ends without a model; the ps go too, so that the next start loads a checkpoint.
  void Fail(const std::string& why);
  // At once, whatever the phase: only files are waited for. No effect when it is over.
  void Over(const absl::Status& status);

  // While not working.
  void OnWorkerGone();
  // It ends, as it was told to or not.
  void OnPsStopping(int ps);
  void OnEvaluatorGone();
  // Told to stop: where only the evaluator is waited for, it is not any more.
  void OnStop();
  void OnWritten();

 private:
  // Leaves kWorking, if it has not yet.
  void Enter(Phase phase);
  void DismissWorkers();
  void DismissPs();
  void DismissEvaluator();
  void KeepOutcome();
  void EndAfterWrites();

  const Options options_;
  Phase phase_ = Phase::kWorking;
  bool found_ = false;
  std::optional<absl::Status> job_outcome_;  // of the job, once workers may go
  std::string failure_;
  absl::Status outcome_;       // as on_over is told
  std::set<int> stopping_ps_;  // those that answered Stop
  Timer dismiss_deadline_{options_.loop};
  Timer over_deadline_{options_.loop};  // until on_over
  const Scope scope_{options_.loop};
};

}  // namespace shoal
