#include "cli/local_cluster/local_cluster.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/status_macros.h"

namespace shoal {
namespace {

// The max time that the destructor waits for a disk that accepts no logs.
constexpr std::chrono::seconds kLogPatience{2};

}  // namespace

LocalCluster::LocalCluster(Options options) : options_(std::move(options)) {}

LocalCluster::~LocalCluster() {
  for (const auto& child : children_) {
    if (child->running()) options_.watch->Remove(child->process->output());
  }
  const auto deadline = std::chrono::steady_clock::now() + kLogPatience;
  for (const auto& child : children_) {
    if (child->log == nullptr) continue;
    child->log->AwaitWritten(std::chrono::ceil<std::chrono::milliseconds>(
        std::max(deadline - std::chrono::steady_clock::now(), {})));
  }
}

absl::Status LocalCluster::Start(const std::vector<TaskCommand>& commands) {
  started_ = options_.loop->Now();
  for (const TaskCommand& command : commands) {
    auto child = std::make_unique<Child>();
    child->task = command.task;
    child->command = command.process;
    const std::string file = std::string(TaskTypeName(command.task.type)) + "-" +
                             std::to_string(command.task.index) + ".log";
    SHOAL_ASSIGN_OR_RETURN(child->log, TaskLog::Open(options_.log_dir + "/" + file));
    children_.push_back(std::move(child));
    SHOAL_RETURN_IF_ERROR(Spawn(children_.back().get()));
  }
  return absl::OkStatus();
}

absl::Status LocalCluster::Restart(const Child& ended) {
  const auto child = std::find_if(children_.begin(), children_.end(),
                                  [&ended](const auto& each) { return each.get() == &ended; });
  (*child)->log->ClearLastLines();
  return Spawn(child->get());
}

absl::Status LocalCluster::Spawn(Child* child) {
  SHOAL_ASSIGN_OR_RETURN(child->process, ChildProcess::Spawn(child->command));
  child->exit_cause.reset();
  child->started_after = options_.loop->Now() - started_;
  options_.watch->Add(child->process->output(),
                      [this, child] { ReadOutput(child, /*at_end=*/false); });
  return absl::OkStatus();
}

void LocalCluster::ReapEnded() {
  for (const auto& child : children_) {
    if (!child->running()) continue;
    child->exit_cause = child->process->TryReap();
    if (child->running()) continue;
    child->ended_after = options_.loop->Now() - started_;
    options_.watch->Remove(child->process->output());
    ReadOutput(child.get(), /*at_end=*/true);
    options_.on_exit(*child);
  }
}

void LocalCluster::ReadOutput(Child* child, bool at_end) {
  char buffer[16 << 10];
  ssize_t size;
  std::vector<std::string> lines;
  while ((size = read(child->process->output(), buffer, sizeof(buffer))) > 0) {
    for (std::string& line : child->log->Append(std::string(buffer, size))) {
      lines.push_back(std::move(line));
    }
  }
  // A pipe at its end stays readable forever. SIGCHLD reports the exit.
  if (size == 0 && !at_end) options_.watch->Remove(child->process->output());
  if (size == 0 || at_end) {
    for (std::string& line : child->log->Flush()) lines.push_back(std::move(line));
  }
  for (const std::string& line : lines) options_.on_line(*child, line);
}

void LocalCluster::Signal(TaskType type, int signal) {
  for (const auto& child : children_) {
    if (child->running() && child->task.type == type) child->process->Signal(signal);
  }
}

void LocalCluster::SignalAll(int signal) {
  for (const auto& child : children_) {
    if (child->running()) child->process->Signal(signal);
  }
}

int LocalCluster::running(TaskType type) const {
  return static_cast<int>(std::count_if(
      children_.begin(), children_.end(),
      [type](const auto& child) { return child->running() && child->task.type == type; }));
}

bool LocalCluster::any_running() const {
  return std::any_of(children_.begin(), children_.end(),
                     [](const auto& child) { return child->running(); });
}

}  // namespace shoal
