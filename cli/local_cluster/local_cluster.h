#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/local_cluster/child_process.h"
#include "cli/local_cluster/descriptor_watch.h"
#include "cli/local_cluster/task_log.h"
#include "common/cluster/cluster_spec.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// What a task of a local cluster runs.
struct TaskCommand {
  TaskId task;
  ChildProcess::Options process;
};

// A task and its process.
struct Child {
  TaskId task;
  ChildProcess::Options command;
  std::unique_ptr<TaskLog> log;
  std::unique_ptr<ChildProcess> process;
  std::optional<ExitCause> exit_cause;  // absent while it runs
  Time started_after{0};                // since the cluster was started, as is
  Time ended_after{0};

  bool running() const { return process != nullptr && !exit_cause.has_value(); }
};

// The daemons of a cluster as children of this process: starts them, keeps their output, notices
// their ends. What follows from an end is the owner's to decide. Loop thread only; that thread must
// live as long as the process does (ChildProcess).
class LocalCluster {
 public:
  struct Options {
    EventLoop* loop = nullptr;         // outlives this
    DescriptorWatch* watch = nullptr;  // outlives this
    std::string log_dir;               // exists; gets "worker-0.log", ...
    std::function<void(const Child&, const std::string& line)> on_line;
    // After the last on_line of the child.
    std::function<void(const Child&)> on_exit;
  };
  explicit LocalCluster(Options options);
  // Kills and reaps what still runs; waits a moment for the logs.
  ~LocalCluster();

  // Starts one process for each command. On an error some may run; destroy this.
  absl::Status Start(const std::vector<TaskCommand>& commands);
  // Starts a child that has ended again, as it was: same command, address and log. An error says
  // why it could not be started.
  absl::Status Restart(const Child& ended);
  // To be called on each SIGCHLD: reaps, and calls on_exit for whatever has ended.
  void ReapEnded();
  // Sends a signal to all running children of a type.
  void Signal(TaskType type, int signal);
  void SignalAll(int signal);

  const std::vector<std::unique_ptr<Child>>& children() const { return children_; }
  int running(TaskType type) const;
  bool any_running() const;

 private:
  absl::Status Spawn(Child* child);
  // Reads what is in the pipe now; `at_end`: the process is gone, and no more will come.
  void ReadOutput(Child* child, bool at_end);

  const Options options_;
  Time started_{0};
  std::vector<std::unique_ptr<Child>> children_;
};

}  // namespace shoal
