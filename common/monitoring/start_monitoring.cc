#include "common/monitoring/start_monitoring.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/log/logging.h"
#include "common/security/certificate.h"
#include "common/security/permissions.h"
#include "common/security/tls_files.h"

namespace shoal {
namespace {

TlsPem PemOf(const TlsFiles& files) {
  return {.certificate = files.certificate_chain_pem, .key = files.key_pem, .ca = files.ca_pem};
}

HttpSecurity SecurityOf(const Daemon& daemon) {
  HttpSecurity security;
  security.token_file = daemon.metrics_token_file();
  const std::shared_ptr<TlsSession>& tls = daemon.tls();
  if (tls == nullptr) return security;
  security.tls = PemOf(*tls->files());
  security.check_client = [tls](std::string_view der) -> absl::Status {
    SHOAL_ASSIGN_OR_RETURN(const Certificate client, ReadCertificate(der));
    SHOAL_RETURN_IF_ERROR(tls->CheckValid(client));
    return CheckPermitted(tls->own(), client.identity, kMetricsPath);
  };
  return security;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Monitoring>> StartMonitoring(const Daemon& daemon,
                                                            const Address& own,
                                                            GrpcNetwork* network,
                                                            Monitoring::Options options) {
  if (!daemon.http_port().has_value()) return nullptr;
  options.loop = network->loop();
  options.security = SecurityOf(daemon);
  options.collect = [network, insecure = daemon.serves_insecurely(),
                     collect = std::move(options.collect)](MetricSamples* out) {
    const GrpcNetwork::Stats stats = network->stats();
    out->Add("shoal_rpc_streams", static_cast<double>(stats.streams));
    out->Add("shoal_rpc_shared_streams", static_cast<double>(stats.shared_streams));
    out->Add("shoal_rpc_unauthorized_streams_total",
             static_cast<double>(stats.unauthorized_streams));
    out->Add("shoal_rpc_rejected_handshakes_total", static_cast<double>(stats.rejected_handshakes));
    out->Add("shoal_rpc_insecure", insecure ? 1 : 0);
    out->Add("shoal_rpc_queued_messages", static_cast<double>(stats.queued_messages));
    out->Add("shoal_rpc_queued_bytes", static_cast<double>(stats.queued_bytes));
    collect(out);
  };
  options.check_accepting = [network] { return network->CheckAccepting(); };
  auto monitoring = std::make_unique<Monitoring>(std::move(options));
  const char* const host = own.IsLoopback() ? "127.0.0.1:" : "0.0.0.0:";
  const absl::Status listening = monitoring->Listen(absl::StrCat(host, *daemon.http_port()));
  if (listening.ok()) {
    if (daemon.tls() != nullptr) {
      daemon.tls()->OnTaken([monitoring = monitoring.get()](const TlsFiles& files) {
        const absl::Status replaced = monitoring->ReplaceCertificates(PemOf(files));
        if (!replaced.ok()) {
          LogWarning(absl::StrCat("the HTTP port: ", std::string(replaced.message())));
        }
      });
    }
    LogInfo("serving /metrics, /healthz and /readyz", {{"address", monitoring->address()}});
    return monitoring;
  }
  const std::string why = absl::StrCat("--http_port: ", std::string(listening.message()));
  if (!daemon.http_optional()) return absl::Status(listening.code(), why);
  LogWarning(why + "; the daemon runs without /metrics, /healthz and /readyz");
  return nullptr;
}

}  // namespace shoal
