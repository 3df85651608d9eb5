#include "cli/train/supervisor.h"

#include <csignal>
#include <utility>

#include "cli/display/number_text.h"
#include "common/daemon/exit_code.h"

namespace shoal {
namespace {

// What this process ends with because a child ended so.
int ExitCodeFor(const ExitCause& cause) {
  return cause.by_signal || cause.ok() ? static_cast<int>(kExitRestart) : cause.code;
}

std::string Sentence(const Child& child) {
  return TaskName(child.task) + " ended: " + child.exit_cause->ToString();
}

}  // namespace

std::string DescribeDeath(const Child& child) {
  const double seconds = std::chrono::duration<double>(child.ended_after).count();
  std::string text = TaskName(child.task) + " (pid " + std::to_string(child.process->pid()) +
                     ") ended " + FormatDuration(seconds) +
                     " after the start: " + child.exit_cause->ToString() + "\n";
  text += child.log->last_lines().empty() ? "It said nothing.\n" : "Its last lines:\n";
  for (const std::string& line : child.log->last_lines()) text += "  " + line + "\n";
  return text + "Its whole log: " + child.log->path() + "\n";
}

Supervisor::Supervisor(Options options) : options_(std::move(options)) {}

Supervisor::~Supervisor() { options_.loop->CancelTimer(timer_); }

void Supervisor::SetTimer(Time delay, std::function<void()> callback) {
  options_.loop->CancelTimer(timer_);
  timer_ = options_.loop->CallAfter(delay, std::move(callback));
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
  if (phase_ == Phase::kEnding && !options_.cluster->any_running()) {
    options_.loop->CancelTimer(timer_);
    phase_ = Phase::kEnded;
    options_.on_ended();
  }
}

void Supervisor::OnCoordinatorExit(const Child& child) {
  if (child.exit_cause->ok()) return End(Outcome::kDone, kExitDone, /*wait_for_leaving=*/true);
  const bool drained = !child.exit_cause->by_signal && child.exit_cause->code == kExitDrained;
  if (phase_ == Phase::kStopping && drained) {
    return End(Outcome::kStopped, kExitDrained, /*wait_for_leaving=*/false);
  }
  Fail(child, phase_ == Phase::kStopping ? "It was to stop with a checkpoint, and could not."
                                         : "The job cannot go on without it.");
}

void Supervisor::OnPsExit(const Child& child) {
  if (child.exit_cause->ok()) return ExpectFinish(child);
  Fail(child, "The job cannot go on without it.");
}

void Supervisor::OnWorkerExit(const Child& child) {
  if (child.exit_cause->ok()) return ExpectFinish(child);
  if (phase_ == Phase::kStopping) return;  // the coordinator stops without it
  if (first_lost_worker_ == nullptr) first_lost_worker_ = &child;
  const int left = options_.cluster->running(TaskType::kWorker);
  if (left == 0) return Fail(*first_lost_worker_, "No worker is left to go on with the job.");
  options_.console->PrintError(Sentence(child) + "; the job goes on with " + std::to_string(left) +
                               (left == 1 ? " worker" : " workers") +
                               " (log: " + child.log->path() + ")");
}

void Supervisor::ExpectFinish(const Child& child) {
  if (phase_ != Phase::kRunning) return;
  if (child.task.type == TaskType::kWorker && options_.cluster->running(TaskType::kWorker) > 0)
    return;
  SetTimer(options_.finish_grace, [this, &child] {
    Fail(child, "It left in order, but the coordinator does not finish the job.");
  });
}

void Supervisor::OnStopSignal() {
  if (phase_ == Phase::kEnded) return;
  if (phase_ != Phase::kRunning) {
    options_.console->PrintError("Killing all processes of this run.");
    if (phase_ == Phase::kStopping)
      End(Outcome::kStopped, kExitDrained, /*wait_for_leaving=*/false);
    options_.cluster->SignalAll(SIGKILL);
    return;
  }
  phase_ = Phase::kStopping;
  options_.loop->CancelTimer(timer_);
  options_.console->PrintError("Stopping with a checkpoint; press Ctrl-C again to kill at once.");
  options_.cluster->Signal(TaskType::kChief, SIGTERM);
}

void Supervisor::Fail(const Child& root, const std::string& consequence) {
  options_.console->PrintError("\nThe training failed: " + DescribeDeath(root) + consequence);
  End(Outcome::kFailed, ExitCodeFor(*root.exit_cause), /*wait_for_leaving=*/false);
}

void Supervisor::End(Outcome outcome, int exit_code, bool wait_for_leaving) {
  phase_ = Phase::kEnding;
  outcome_ = outcome;
  exit_code_ = exit_code;
  if (wait_for_leaving) {
    SetTimer(options_.leave_grace, [this] { TerminateRest(); });
  } else {
    TerminateRest();
  }
}

void Supervisor::TerminateRest() {
  options_.cluster->SignalAll(SIGTERM);
  SetTimer(options_.term_grace, [this] {
    for (const auto& child : options_.cluster->children()) {
      if (child->running()) {
        options_.console->PrintError(TaskName(child->task) + " does not stop and is killed.");
      }
    }
    options_.cluster->SignalAll(SIGKILL);
  });
}

}  // namespace shoal
