#include "cli/train/supervisor.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/display/number_text.h"
#include "common/daemon/process/exit_code.h"

namespace shoal {
namespace {

// How long tasks may take to leave by themselves, and then to obey SIGTERM. A worker drains for up
// to 10 s.
constexpr Time kLeaveGrace = std::chrono::seconds(10);
constexpr Time kTermGrace = std::chrono::seconds(12);
// How long a stop waits for an answer of the coordinator.
constexpr Time kSilenceGrace = std::chrono::seconds(15);
// How long the coordinator may go on after a ps, or all workers, ended with exit code 0.
constexpr Time kFinishGrace = std::chrono::seconds(60);

// Returns the exit code of this process if this child ended it.
int ExitCodeFor(const ExitCause& cause) {
  return cause.by_signal || cause.ok() ? static_cast<int>(kExitRestart) : cause.code;
}

bool EndedWith(const Child& child, ExitCode code) {
  return !child.exit_cause->by_signal && child.exit_cause->code == code;
}

std::string SinceStart(Time time) { return FormatDuration(ToSeconds(time)) + " after the start"; }

std::string Sentence(const Child& child) {
  return absl::StrCat(TaskName(child.task), " ended: ", child.exit_cause->ToString());
}

// The text of the daemon's last line, without its time, level, task and exit code.
std::string LastError(const Child& child) {
  const std::deque<std::string>& lines = child.log->last_lines();
  if (lines.empty() || !IsLastError(lines.back())) return "";
  const std::vector<std::string> words = absl::StrSplit(lines.back(), absl::MaxSplits(' ', 3));
  const std::string& said = words.back();
  return absl::StrCat(": ", said.substr(0, said.rfind(" exit_code=")));
}

std::string Pause(Time pause) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", ToSeconds(pause));
  return text;
}

}  // namespace

std::string DescribeDeath(const Child& child) {
  std::string text =
      absl::StrCat(TaskName(child.task), " (pid ", child.process->pid(), ") ended ",
                   SinceStart(child.ended_after), ": ", child.exit_cause->ToString(), "\n");
  text += child.log->last_lines().empty() ? "It logged nothing.\n" : "Its last lines:\n";
  for (const std::string& line : child.log->last_lines()) text += "  " + line + "\n";
  return text + "Its whole log: " + child.log->path() + "\n";
}

Supervisor::Supervisor(Options options)
    : options_(std::move(options)), policy_(options_.max_restarts) {}

bool Supervisor::restarting(TaskType type) const {
  return std::any_of(restarts_.begin(), restarts_.end(),
                     [type](const auto& each) { return each.first->task.type == type; });
}

void Supervisor::OnChildExit(const Child& child) {
  if (phase_ == Phase::kRunning || phase_ == Phase::kStopping) {
    switch (child.task.type) {
      case TaskType::kChief:
        OnCoordinatorExit(child);
        break;
      case TaskType::kPs:
        OnPsExit(child);
        break;
      default:
        OnWorkerExit(child);
    }
  }
  MaybeEnded();
}

bool Supervisor::ShowsLastLines(const Child& child) const {
  if (phase_ == Phase::kEnding || phase_ == Phase::kEnded) return false;
  return child.task.type != TaskType::kWorker || options_.max_restarts > 0;
}

void Supervisor::OnCoordinatorExit(const Child& child) {
  if (child.exit_cause->ok()) return End(Outcome::kDone, kExitDone, /*wait_for_leaving=*/true);
  if (EndedWith(child, kExitDrained)) {
    return End(Outcome::kStopped, kExitDrained, /*wait_for_leaving=*/false);
  }
  if (phase_ == Phase::kStopping) {
    NoteFailure(child);
    return Fail(child, "It could not stop with a checkpoint.");
  }
  RestartOrFail(child);
}

void Supervisor::OnPsExit(const Child& child) {
  if (child.exit_cause->ok()) return ExpectFinish(child);
  RestartOrFail(child);
}

void Supervisor::OnWorkerExit(const Child& child) {
  if (child.exit_cause->ok()) return ExpectFinish(child);
  if (!EndedWith(child, kExitDrained)) return RestartOrFail(child);
  if (phase_ != Phase::kRunning) return;
  const int left = options_.cluster->running(TaskType::kWorker);
  options_.console->PrintError(
      absl::StrCat(TaskName(child.task), " was drained and does not restart; ",
                   left > 0 || restarting(TaskType::kWorker)
                       ? "the others continue"
                       : "no worker is left: the job waits until one joins, or Ctrl-C stops it"));
}

void Supervisor::ExpectFinish(const Child& child) {
  if (phase_ != Phase::kRunning) return;
  if (child.task.type == TaskType::kWorker && options_.cluster->running(TaskType::kWorker) > 0)
    return;
  timer_.Set(kFinishGrace, [this, &child] {
    NoteFailure(child);
    Fail(child, "It ended in order, but the coordinator does not finish the job.");
    MaybeEnded();
  });
}

void Supervisor::NoteFailure(const Child& child) {
  deaths_.Add(child.task, DescribeDeath(child),
              absl::StrCat(SinceStart(child.ended_after), ": ", Sentence(child)));
}

void Supervisor::RestartOrFail(const Child& child) {
  if (!child.exit_cause->by_signal && IsRestartUseless(child.exit_cause->code)) {
    NoteFailure(child);
    return Fail(child, "A restart would not help.");
  }
  const std::optional<Time> pause =
      policy_.PauseBeforeRestart(child.task, child.ended_after - child.started_after);
  const int restarts = policy_.restarts(child.task);
  if (restarts == 1) deaths_.Remove(child.task);  // earlier deaths
  NoteFailure(child);
  if (pause.has_value()) {
    options_.console->PrintError(absl::StrCat(DescribeDeath(child), "It restarts in ",
                                              Pause(*pause), " (restart ", restarts, " of ",
                                              options_.max_restarts, ")."));
    const auto restart = restarts_.try_emplace(&child, options_.loop).first;
    restart->second.Set(*pause, [this, &child] { Restart(child); });
    return;
  }
  if (restarts > 0) {
    return Fail(
        child,
        absl::StrCat("It restarted ", restarts == 1 ? "once" : absl::StrCat(restarts, " times"),
                     " and does not stay up; the last time it ended ",
                     SinceStart(child.ended_after), ": ", child.exit_cause->ToString(), "."));
  }
  if (child.task.type != TaskType::kWorker)
    return Fail(child, "The job cannot continue without it; no task restarts.");
  const int left = options_.cluster->running(TaskType::kWorker);
  if (left == 0) return Fail(child, "No worker is left to continue the job.");
  options_.console->PrintError(absl::StrCat(Sentence(child), "; the job continues with ", left,
                                            left == 1 ? " worker" : " workers",
                                            " (log: ", child.log->path(), ")"));
}

void Supervisor::Restart(const Child& child) {
  restarts_.erase(&child);
  if (const absl::Status started = options_.cluster->Restart(child); !started.ok()) {
    Fail(child, std::string(started.message()));
    MaybeEnded();
  }
}

void Supervisor::OnStopSignal() {
  if (phase_ == Phase::kEnded) return;
  if (phase_ != Phase::kRunning) {
    options_.console->PrintError("Killing all processes of this run.");
    if (phase_ == Phase::kStopping)
      End(Outcome::kStopped, kExitDrained, /*wait_for_leaving=*/false);
    options_.cluster->SignalAll(SIGKILL);
    return MaybeEnded();
  }
  phase_ = Phase::kStopping;
  timer_.Cancel();
  if (options_.cluster->running(TaskType::kChief) == 0) {
    options_.console->PrintError("Stopping; without a coordinator there is no further checkpoint.");
    End(Outcome::kStopped, kExitDrained, /*wait_for_leaving=*/false);
    return MaybeEnded();
  }
  options_.console->PrintError("Stopping with a checkpoint; press Ctrl-C again to kill at once.");
  options_.cluster->Signal(TaskType::kChief, SIGTERM);
  AwaitStop();
}

void Supervisor::OnCoordinatorAnswer() {
  if (phase_ == Phase::kStopping) AwaitStop();
}

void Supervisor::AwaitStop() {
  timer_.Set(kSilenceGrace, [this] {
    options_.console->PrintError(
        absl::StrCat(TaskName({TaskType::kChief, 0}), " has not answered for ",
                     FormatDuration(ToSeconds(kSilenceGrace)),
                     "; stopping without a checkpoint of the last steps."));
    End(Outcome::kStopped, kExitDrained, /*wait_for_leaving=*/false);
    MaybeEnded();
  });
}

void Supervisor::Fail(const Child& child, const std::string& consequence) {
  // Reports the first death of a task that died repeatedly. If all workers died, reports the first
  // death of any worker.
  const bool all_workers = child.task.type == TaskType::kWorker &&
                           options_.cluster->running(TaskType::kWorker) == 0 &&
                           policy_.restarts(child.task) == 0;
  const std::string& root =
      all_workers ? deaths_.FirstOf(child.task.type) : deaths_.FirstOf(child.task);
  options_.console->PrintError(
      absl::StrCat("\nThe training failed: ", root, consequence, deaths_.ToString()));
  const bool keeps_its_end = child.task.type == TaskType::kChief && !child.exit_cause->by_signal &&
                             IsRestartUseless(child.exit_cause->code);
  if (!keeps_its_end) cause_ = Sentence(child) + LastError(child);
  End(Outcome::kFailed, ExitCodeFor(*child.exit_cause), /*wait_for_leaving=*/false);
}

void Supervisor::End(Outcome outcome, int exit_code, bool wait_for_leaving) {
  phase_ = Phase::kEnding;
  outcome_ = outcome;
  exit_code_ = exit_code;
  restarts_.clear();
  if (wait_for_leaving) {
    timer_.Set(kLeaveGrace, [this] { TerminateRest(); });
  } else {
    TerminateRest();
  }
}

void Supervisor::MaybeEnded() {
  if (phase_ != Phase::kEnding || options_.cluster->any_running()) return;
  timer_.Cancel();
  phase_ = Phase::kEnded;
  options_.on_ended();
}

void Supervisor::TerminateRest() {
  options_.cluster->SignalAll(SIGTERM);
  timer_.Set(kTermGrace, [this] {
    for (const auto& child : options_.cluster->children()) {
      if (child->running()) {
        options_.console->PrintError(TaskName(child->task) + " does not stop and is killed.");
      }
    }
    options_.cluster->SignalAll(SIGKILL);
  });
}

}  // namespace shoal
