#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace shoal {

// TLS of a daemon's HTTP port, and who may see /metrics. /healthz and /readyz are open to everyone.
//
//   tls   token_file   /metrics
//   no    none         open to everyone
//   no    given        with the token
//   yes   none         with a certificate
//   yes   given        with a certificate or the token
struct HttpSecurity {
  bool tls = false;
  // PEM texts. Needed with TLS: the daemon's certificates, the leaf first, and the leaf's key.
  std::string certificate_pem;
  std::string key_pem;
  // The CAs of clients, one or more. Without them, no certificate lets a client in.
  std::string ca_pem;
  // Decides about a client by its certificate, which the CA verifies. The message of an error is
  // one line for the client. Any thread. If null, no certificate lets a client in.
  std::function<absl::Status(std::string_view client_certificate_der)> check_client;
  // A file with a token that clients send as "Authorization: Bearer TOKEN".
  std::string token_file;
};

}  // namespace shoal
