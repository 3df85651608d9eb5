#pragma once

#include <functional>
#include <map>
#include <string>

#include "cli/display/console.h"
#include "cli/local_cluster/local_cluster.h"
#include "cli/train/death_list.h"
#include "cli/train/restart_policy.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"

namespace shoal {

// Decides what follows when a process of a local cluster ends or a person wants to stop:
//
//   kRunning ── coordinator exits 0 ──────────────────────────────▶ kEnding (others leave)
//   kRunning ── a task cannot be kept alive ──────────────────────▶ kEnding (others are stopped)
//   kRunning ── stop signal, drained coordinator ──▶ kStopping ───▶ kEnding (others are stopped)
//   kEnding  ── nobody runs any more ─────────────────────────────▶ kEnded
//
// A task that dies is named and, while the job goes on, started again; not so one that was drained,
// or whose exit code says that it would end so again. In kEnding whoever is still there after a
// grace gets SIGTERM, after another one SIGKILL: a coordinator that stops says itself whom it gives
// up waiting for, and one that says nothing is given up, so that a stop takes 30 s at most unless a
// checkpoint is being written. A second stop signal kills all at once, in any
// phase. Loop thread only.
class Supervisor {
 public:
  enum class Phase { kRunning, kStopping, kEnding, kEnded };
  enum class Outcome { kDone, kStopped, kFailed };

  struct Options {
    EventLoop* loop = nullptr;        // outlives this
    LocalCluster* cluster = nullptr;  // outlives this
    Console* console = nullptr;       // outlives this
    int max_restarts = 0;             // of one task that dies
    std::function<void()> on_ended;
  };
  explicit Supervisor(Options options);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // LocalCluster's on_exit.
  void OnChildExit(const Child& child);
  // This process was told to stop, or told again.
  void OnStopSignal();
  // The coordinator said how it goes: a stop waits for one that answers.
  void OnCoordinatorAnswer();

  // Where this task ends now, its last lines are printed with what follows from that.
  bool TellsLastLines(const Child& child) const;

  Phase phase() const { return phase_; }
  Outcome outcome() const { return outcome_; }
  // Of this process; meaningful in kEnded.
  int exit_code() const { return exit_code_; }
  // Of kFailed: which task was the cause, how it ended and its last error, in one line. Empty where
  // that is the coordinator and it has kept its end in the run directory itself, if it led the run.
  const std::string& cause() const { return cause_; }

 private:
  void OnCoordinatorExit(const Child& child);
  void OnPsExit(const Child& child);
  void OnWorkerExit(const Child& child);
  // A task ended in order; the coordinator is expected to follow.
  void ExpectFinish(const Child& child);
  // Starts a task that died again, after a pause, or ends the job when that is of no use.
  void RestartOrFail(const Child& child);
  void Restart(const Child& child);
  void NoteFailure(const Child& child);
  // Waits for the coordinator to stop; without a sign of life, only for so long.
  void AwaitStop();
  // Names the first failure of the task as the cause, and ends everything.
  void Fail(const Child& child, const std::string& consequence);
  void End(Outcome outcome, int exit_code, bool wait_for_leaving);
  void MaybeEnded();
  void TerminateRest();
  bool restarting(TaskType type) const;

  const Options options_;
  RestartPolicy policy_;
  Phase phase_ = Phase::kRunning;
  Outcome outcome_ = Outcome::kDone;
  int exit_code_ = 0;
  std::string cause_;
  DeathList deaths_;
  Timer timer_{options_.loop};
  std::map<const Child*, Timer> restarts_;  // that are to come
};

// What people need to know of a child that died: which, when, how, its last lines, where its log
// is.
std::string DescribeDeath(const Child& child);

}  // namespace shoal
