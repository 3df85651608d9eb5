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
#include "common/daemon/settings/bind_address.h"
#include "common/daemon/settings/settings.h"
#include "common/daemon/signal_thread.h"
#include "common/log/logging.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/network.h"
#include "common/rpc/tls/tls_session.h"
#include "common/security/permissions.h"

namespace shoal {

// The shared part of the mains of coordinator, worker and ps. Create it in main() before any
// thread, add the daemon's own settings, then call Run():
//
//   int main(int argc, char** argv) {
//     shoal::Daemon daemon("shoal-ps", shoal::TaskType::kPs, "Holds and updates variables.");
//     daemon.settings().AddText("data_dir", &data_dir, "Where …");
//     return daemon.Run(argc, argv, [&]() -> absl::Status { … });
//   }
//
// Its common settings: --cluster_spec, --log_format, --log_level, --http_port, --http_optional,
// --tls_dir, --insecure, --metrics_token_file, --config, --version, --help.
class Daemon {
 public:
  Daemon(const std::string& program, TaskType type, const std::string& description);

  Settings& settings() { return settings_; }

  // Sets the examples at the end of --help. The meaning of the exit codes follows them.
  void SetExamples(const std::string& examples);

  // Opens standard input, output and error if they are closed. Reads the settings, clears proxy
  // variables, raises the limit of open files, starts logging, takes over signals and logs the
  // given settings. Then runs `body` on this thread and logs its result. Waits briefly for the log
  // to be written, and returns the exit code of the process.
  int Run(int argc, char** argv, const std::function<absl::Status()>& body);

  // For `body`: returns the cluster spec of --cluster_spec or TF_CONFIG. Rejects a task of another
  // type than this daemon's. From here on the log names the task.
  absl::StatusOr<ClusterSpec> ReadClusterSpec();

  // For `body`: opens --tls_dir for a daemon that has one of `roles`. Null without the flag: plain.
  // Errors name the file and what would be right. With --insecure besides --tls_dir an error, too.
  // Call it before the process uses gRPC.
  absl::StatusOr<std::shared_ptr<TlsSession>> OpenTls(RoleSet roles);
  // Returns the result of OpenTls(); null before it.
  const std::shared_ptr<TlsSession>& tls() const { return tls_; }

  // For `body`: makes `network` listen at the task's own entry in the cluster spec
  // (bind_address.h). Logs the address, and a warning for plain traffic beyond loopback. Errors are
  // Network::Listen's, and InvalidArgument for an address beyond loopback without --tls_dir and
  // --insecure. Call it after OpenTls().
  absl::Status Listen(const Address& own, Network* network, Network::Acceptor acceptor);
  // True once Listen() has opened a port beyond loopback for plain traffic.
  bool serves_insecurely() const { return serves_insecurely_; }

  // For `body`: sets the task's name in the log, for a worker that gets its index from the
  // coordinator.
  void NameTask(const TaskId& task);

  // --http_port, if given, --http_optional, and --metrics_token_file, empty if not given
  // (common/monitoring/start_monitoring.h).
  std::optional<int> http_port() const {
    return http_port_ < 0 ? std::nullopt : std::optional<int>(static_cast<int>(http_port_));
  }
  bool http_optional() const { return http_optional_; }
  const std::string& metrics_token_file() const { return metrics_token_file_; }

  // For `body`: calls `handler(count)` for every signal that requests a stop; see
  // SignalThread::SetHandler. `body` must set an empty handler before it destroys anything that the
  // handler uses.
  void OnStopSignal(std::function<void(int count)> handler);

  // For `body`: declares that this daemon is serving, with or without peers. Notifies the service
  // manager and makes `loop` feed its watchdog. Call it on the loop's thread, or before the loop
  // runs.
  void Serving(EventLoop* loop);

  // For `body`: declares that its work ended with `status`, which it will return soon. If this
  // takes more than three seconds, the process ends anyway with the exit code of `status`
  // (end_deadline.h). Call it on the loop's thread. Only the first call counts.
  void Ending(const absl::Status& status);

 private:
  void LogConfiguration() const;

  const std::string program_;
  const TaskType type_;
  Settings settings_;
  std::string cluster_spec_file_;
  std::string tls_dir_;
  bool insecure_ = false;
  bool serves_insecurely_ = false;
  std::shared_ptr<TlsSession> tls_;
  std::string log_format_ = "text";
  std::string log_level_ = "info";
  int64_t http_port_ = -1;
  bool http_optional_ = false;
  std::string metrics_token_file_;
  int64_t parent_pid_ = 0;  // 0: this process may outlive its parent
  LogOptions log_options_;
  SignalThread* signals_ = nullptr;  // lives while `body` runs
  std::unique_ptr<EndDeadline> end_deadline_;
};

}  // namespace shoal
