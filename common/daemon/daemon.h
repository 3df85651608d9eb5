#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"
#include "common/daemon/end_deadline.h"
#include "common/daemon/logging.h"
#include "common/daemon/settings.h"
#include "common/daemon/signal_thread.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// What the mains of coordinator, worker and ps have in common. Made in main() before any thread;
// the daemon's own settings are added, then Run() does the rest:
//
//   int main(int argc, char** argv) {
//     shoal::Daemon daemon("shoal-ps", shoal::TaskType::kPs, "Holds and updates variables.");
//     daemon.settings().AddText("data_dir", &data_dir, "Where …");
//     return daemon.Run(argc, argv, [&]() -> absl::Status { … });
//   }
//
// Its common settings: --cluster_spec, --log_format, --log_level, --http_port, --http_optional,
// --config, --version, --help.
class Daemon {
 public:
  Daemon(const std::string& program, TaskType type, const std::string& description);

  Settings& settings() { return settings_; }

  // What --help ends with: examples, and below them what the exit codes of all daemons mean.
  void SetExamples(const std::string& examples);

  // Opens what is closed of standard input, output and error, reads the settings, clears proxy
  // variables, raises the limit of open files, starts logging and takes over signals, logs the
  // settings that were given, runs `body`, logs how it ended, waits a moment for the log to be
  // written, and returns the exit code of the process. `body` runs on this thread.
  int Run(int argc, char** argv, const std::function<absl::Status()>& body);

  // For `body`: the cluster spec of --cluster_spec or TF_CONFIG. It is an error when its task is
  // not of this daemon's type. From here on the log names the task.
  absl::StatusOr<ClusterSpec> ReadClusterSpec();

  // For `body`: names the task in the log, for a worker that is given its index by the coordinator.
  void NameTask(const TaskId& task);

  // --http_port, none when not given, and --http_optional (common/monitoring/start_monitoring.h).
  std::optional<int> http_port() const {
    return http_port_ < 0 ? std::nullopt : std::optional<int>(static_cast<int>(http_port_));
  }
  bool http_optional() const { return http_optional_; }

  // For `body`: has `handler(count)` called for every signal that asks for a stop; see
  // SignalThread::SetHandler. `body` must set it back to an empty one before what the handler uses
  // is destroyed.
  void OnStopSignal(std::function<void(int count)> handler);

  // For `body`: from here on this daemon does its work, whether or not it has peers; the service
  // manager is told, and its watchdog is kept content by `loop`. On the loop's thread or before it
  // runs.
  void Serving(EventLoop* loop);

  // For `body`: its work is over, as `status` says, and it is about to return that. Where it takes
  // more than three seconds from now, the process ends without it (end_deadline.h), with the exit
  // code of `status`. On the loop's thread; only the first call counts.
  void Ending(const absl::Status& status);

 private:
  void LogConfiguration() const;

  const std::string program_;
  const TaskType type_;
  Settings settings_;
  std::string cluster_spec_file_;
  std::string log_format_ = "text";
  std::string log_level_ = "info";
  int64_t http_port_ = -1;
  bool http_optional_ = false;
  int64_t parent_pid_ = 0;  // 0: this process may outlive its parent
  LogOptions log_options_;
  SignalThread* signals_ = nullptr;  // lives while `body` runs
  std::unique_ptr<EndDeadline> end_deadline_;
};

}  // namespace shoal
