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

// Decides what follows when a process of a local cluster ends or the user wants to stop:
//
//   kRunning ── coordinator exits 0 ──────────────────────────────▶ kEnding (others leave)
//   kRunning ── a task cannot be kept alive ──────────────────────▶ kEnding (others are stopped)
//   kRunning ── stop signal, drained coordinator ──▶ kStopping ───▶ kEnding (others are stopped)
//   kEnding  ── all processes have ended ─────────────────────────▶ kEnded
//
// A task that dies is reported and, while the job runs, restarted. It is not restarted if it was
// drained, or if its exit code says that a restart would end the same way. In kEnding, the
// processes that remain get SIGTERM after a grace period and SIGKILL after another one. A
// coordinator that stops reports itself which tasks it no longer waits for; a silent coordinator is
// stopped like the others. So a stop takes at most 30 s, unless a checkpoint is being written. A
// second stop signal kills all processes at once, in any phase. Loop thread only.
class Supervisor {
 public:
  enum class Phase { kRunning, kStopping, kEnding, kEnded };
  enum class Outcome { kDone, kStopped, kFailed };

  struct Options {
    EventLoop* loop = nullptr;        // outlives this
    LocalCluster* cluster = nullptr;  // outlives this
    Console* console = nullptr;       // outlives this
    int max_restarts = 0;             // per task
    std::function<void()> on_ended;
  };
  explicit Supervisor(Options options);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // The on_exit callback of LocalCluster.
  void OnChildExit(const Child& child);
  // Call for the first stop signal of this process and for each further one.
  void OnStopSignal();
  // Call when the coordinator has answered. A stop waits for a coordinator that answers.
  void OnCoordinatorAnswer();

  // Returns true if the death report of this task, which contains its last lines, would be printed
  // if it ended now.
  bool ShowsLastLines(const Child& child) const;

  Phase phase() const { return phase_; }
  Outcome outcome() const { return outcome_; }
  // The exit code of this process; valid in kEnded.
  int exit_code() const { return exit_code_; }
  // For kFailed, in one line: the task that caused it, how it ended, and its last error. Empty if
  // the cause is the coordinator and it has recorded its end in the run directory itself, which it
  // does if it led the run.
  const std::string& cause() const { return cause_; }

 private:
  void OnCoordinatorExit(const Child& child);
  void OnPsExit(const Child& child);
  void OnWorkerExit(const Child& child);
  // Call when a task has ended in order. Expects the coordinator to end soon.
  void ExpectFinish(const Child& child);
  // Restarts a task that died, after a pause, or ends the job if a restart is useless.
  void RestartOrFail(const Child& child);
  void Restart(const Child& child);
  void NoteFailure(const Child& child);
  // Waits for the coordinator to stop, at most kSilenceGrace after its last answer.
  void AwaitStop();
  // Reports the task's first failure as the cause, and ends everything.
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

// Describes the death of a child for people: which, when, how, its last lines, the path of its log.
std::string DescribeDeath(const Child& child);

}  // namespace shoal
