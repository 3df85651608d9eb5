#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "cli/display/console.h"
#include "cli/local_cluster/local_cluster.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// Decides what follows when a process of a local cluster ends or a person wants to stop:
//
//   kRunning --coordinator exits 0----------------------------> kEnding (the others leave by
//   themselves) kRunning --coordinator or a ps dies, last worker dies-----> kEnding (the others are
//   stopped) kRunning --stop signal--> kStopping (the coordinator writes a checkpoint) kStopping
//   --coordinator exits--> kEnding kEnding --nobody runs any more--> kEnded
//
// In kEnding whoever is still there after a grace gets SIGTERM, after another one SIGKILL. A second
// stop signal kills all at once, in any phase. Loop thread only.
class Supervisor {
 public:
  enum class Phase { kRunning, kStopping, kEnding, kEnded };
  enum class Outcome { kDone, kStopped, kFailed };

  struct Options {
    EventLoop* loop = nullptr;        // outlives this
    LocalCluster* cluster = nullptr;  // outlives this
    Console* console = nullptr;       // outlives this
    // How long tasks may take to leave by themselves, and then to obey SIGTERM (a worker drains for
    // up to 10 s).
    Time leave_grace = std::chrono::seconds(10);
    Time term_grace = std::chrono::seconds(15);
    // How long the coordinator may go on after a ps, or all workers, ended with exit code 0.
    Time finish_grace = std::chrono::seconds(60);
    std::function<void()> on_ended;
  };
  explicit Supervisor(Options options);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // LocalCluster's on_exit.
  void OnChildExit(const Child& child);
  // SIGINT, SIGTERM or SIGHUP came to this process.
  void OnStopSignal();

  Phase phase() const { return phase_; }
  Outcome outcome() const { return outcome_; }
  // Of this process; meaningful in kEnded.
  int exit_code() const { return exit_code_; }

 private:
  void OnCoordinatorExit(const Child& child);
  void OnPsExit(const Child& child);
  void OnWorkerExit(const Child& child);
  // A task ended in order; the coordinator is expected to follow.
  void ExpectFinish(const Child& child);
  // Names `root` as the cause and ends everything.
  void Fail(const Child& root, const std::string& consequence);
  void End(Outcome outcome, int exit_code, bool wait_for_leaving);
  void TerminateRest();
  void SetTimer(Time delay, std::function<void()> callback);

  const Options options_;
  Phase phase_ = Phase::kRunning;
  Outcome outcome_ = Outcome::kDone;
  int exit_code_ = 0;
  const Child* first_lost_worker_ = nullptr;
  EventLoop::TimerId timer_ = 0;
};

// What people need to know of a child that died: which, when, how, its last lines, where its log
// is.
std::string DescribeDeath(const Child& child);

}  // namespace shoal
