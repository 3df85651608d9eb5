#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/monitoring/tls_credentials.h"

namespace shoal {

// TLS of a daemon's HTTP port, and who may see /metrics. /healthz and /readyz are open to everyone.
//
//   tls   token_file   /metrics
//   no    none         open to everyone
//   no    given        with the token
//   yes   none         with a certificate
//   yes   given        with a certificate or the token
struct HttpSecurity {
  // The daemon's certificates, and the CAs of clients. Without CAs, no certificate lets a client
  // in.
  std::optional<TlsPem> tls;
  // Decides about a client by its certificate, which the CA verifies. The message of an error is
  // one line for the client. Any thread. If null, no certificate lets a client in.
  std::function<absl::Status(std::string_view client_certificate_der)> check_client;
  // A file with a token that clients send as "Authorization: Bearer TOKEN".
  std::string token_file;
};

}  // namespace shoal
