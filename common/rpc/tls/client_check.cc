#include "common/rpc/tls/client_check.h"

#include <string>
#include <utility>

#include "common/rpc/tls/tls_session.h"

namespace shoal {
namespace {

class ClientCheck : public grpc::experimental::ExternalCertificateVerifier {
 public:
  ClientCheck(std::shared_ptr<const TlsSession> session,
              std::function<void(const absl::Status&)> on_rejected)
      : session_(std::move(session)), on_rejected_(std::move(on_rejected)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>, grpc::Status* status) override {
    const grpc::string_ref own = request->peer_cert();
    const grpc::string_ref others = request->peer_cert_full_chain();
    // gRPC 1.51 gives a server the others without the client's own.
    const absl::Status issued = session_->CheckIssuer(std::string(own.data(), own.size()) +
                                                      std::string(others.data(), others.size()));
    if (!issued.ok() && on_rejected_) on_rejected_(issued);
    *status =
        grpc::Status(static_cast<grpc::StatusCode>(issued.code()), std::string(issued.message()));
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::shared_ptr<const TlsSession> session_;
  const std::function<void(const absl::Status&)> on_rejected_;
};

}  // namespace

std::shared_ptr<grpc::experimental::CertificateVerifier> MakeClientCheck(
    std::shared_ptr<const TlsSession> session,
    std::function<void(const absl::Status&)> on_rejected) {
  return grpc::experimental::ExternalCertificateVerifier::Create<ClientCheck>(
      std::move(session), std::move(on_rejected));
}

}  // namespace shoal
