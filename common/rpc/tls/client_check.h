#pragma once

#include <grpcpp/security/tls_certificate_verifier.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"

namespace shoal {

class TlsSession;

// Returns a server's check at the end of a handshake: only clients whose certificate a CA of the
// session has issued (TlsSession::CheckIssuer) get beyond it. The others are disconnected before
// HTTP/2 begins. `on_rejected` gets the reason, on gRPC's threads; may be null.
std::shared_ptr<grpc::experimental::CertificateVerifier> MakeClientCheck(
    std::shared_ptr<const TlsSession> session,
    std::function<void(const absl::Status&)> on_rejected);

}  // namespace shoal
