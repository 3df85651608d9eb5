#include "common/monitoring/start_monitoring.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/logging.h"

namespace shoal {

absl::StatusOr<std::unique_ptr<Monitoring>> StartMonitoring(const Daemon& daemon,
                                                            const Address& own,
                                                            GrpcNetwork* network,
                                                            Monitoring::Options options) {
  if (!daemon.http_port().has_value()) return nullptr;
  options.loop = network->loop();
  options.security.token_file = daemon.metrics_token_file();
  options.collect = [network, collect = std::move(options.collect)](MetricSamples* out) {
    const GrpcNetwork::Stats stats = network->stats();
    out->Add("shoal_rpc_streams", static_cast<double>(stats.streams));
    out->Add("shoal_rpc_shared_streams", static_cast<double>(stats.shared_streams));
    out->Add("shoal_rpc_queued_messages", static_cast<double>(stats.queued_messages));
    out->Add("shoal_rpc_queued_bytes", static_cast<double>(stats.queued_bytes));
    collect(out);
  };
  options.check_accepting = [network] { return network->CheckAccepting(); };
  auto monitoring = std::make_unique<Monitoring>(std::move(options));
  const char* const host = own.IsLoopback() ? "127.0.0.1:" : "0.0.0.0:";
  const absl::Status listening = monitoring->Listen(absl::StrCat(host, *daemon.http_port()));
  if (listening.ok()) {
    LogInfo("serving /metrics, /healthz and /readyz", {{"address", monitoring->address()}});
    return monitoring;
  }
  const std::string why = absl::StrCat("--http_port: ", std::string(listening.message()));
  if (!daemon.http_optional()) return absl::Status(listening.code(), why);
  LogWarning(why + "; the daemon runs without /metrics, /healthz and /readyz");
  return nullptr;
}

}  // namespace shoal
