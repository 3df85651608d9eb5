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

// The command of one task of a local cluster.
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
  Time started_after{0};                // since the start of the cluster, like the next
  Time ended_after{0};

  bool running() const { return process != nullptr && !exit_cause.has_value(); }
};

// The daemons of a cluster as children of this process: starts them, logs their output, detects
// their ends. The owner decides what follows from an end. Loop thread only. That thread must live
// as long as the process (ChildProcess).
class LocalCluster {
 public:
  struct Options {
    EventLoop* loop = nullptr;         // outlives this
    DescriptorWatch* watch = nullptr;  // outlives this
    std::string log_dir;               // exists; gets "worker-0.log", ...
    std::function<void(const Child&, const std::string& line)> on_line;
    // Called after the child's last on_line.
    std::function<void(const Child&)> on_exit;
  };
  explicit LocalCluster(Options options);
  // Kills and reaps the running processes; waits a moment for the logs.
  ~LocalCluster();

  // Starts one process per command. On an error some may run; destroy this.
  absl::Status Start(const std::vector<TaskCommand>& commands);
  // Restarts a child that has ended, with the same command, address and log. An error names the
  // reason.
  absl::Status Restart(const Child& ended);
  // Call this on each SIGCHLD. Reaps the children that have ended and calls on_exit for each.
  void ReapEnded();
  // Sends a signal to all running children of a type.
  void Signal(TaskType type, int signal);
  void SignalAll(int signal);

  const std::vector<std::unique_ptr<Child>>& children() const { return children_; }
  int running(TaskType type) const;
  bool any_running() const;

 private:
  absl::Status Spawn(Child* child);
  // Reads the current content of the pipe. `at_end`: the process has ended and writes no more.
  void ReadOutput(Child* child, bool at_end);

  const Options options_;
  Time started_{0};
  std::vector<std::unique_ptr<Child>> children_;
};

}  // namespace shoal
