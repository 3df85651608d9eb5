#pragma once

#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/support/string_ref.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace shoal {

// The certificates that the other end of a connection shows in its handshake, as PEM.
struct ShownCertificates {
  // gRPC 1.51 gives a client the whole chain of the server as `others`, and a server the client's
  // intermediates alone.
  ShownCertificates(grpc::string_ref own_pem, grpc::string_ref others);

  std::string own;
  std::string chain;  // `own`, then its intermediates
};

// Returns gRPC's check at the end of each handshake. If `check` returns an error, gRPC ends the
// connection before HTTP/2 begins. Calls `check` on gRPC's threads, on several at a time.
std::shared_ptr<grpc::experimental::CertificateVerifier> MakeHandshakeCheck(
    std::function<absl::Status(const ShownCertificates&)> check);

}  // namespace shoal
