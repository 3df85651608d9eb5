#include "common/rpc/tls/handshake_check.h"

#include <utility>

namespace shoal {
namespace {

class HandshakeCheck : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit HandshakeCheck(std::function<absl::Status(const ShownCertificates&)> check)
      : check_(std::move(check)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>, grpc::Status* status) override {
    const absl::Status checked = check_({request->peer_cert(), request->peer_cert_full_chain()});
    *status =
        grpc::Status(static_cast<grpc::StatusCode>(checked.code()), std::string(checked.message()));
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::function<absl::Status(const ShownCertificates&)> check_;
};

}  // namespace

ShownCertificates::ShownCertificates(grpc::string_ref own_pem, grpc::string_ref others)
    : own(own_pem.data(), own_pem.size()), chain(others.data(), others.size()) {
  if (!chain.starts_with(own)) chain.insert(0, own);
}

std::shared_ptr<grpc::experimental::CertificateVerifier> MakeHandshakeCheck(
    std::function<absl::Status(const ShownCertificates&)> check) {
  return grpc::experimental::ExternalCertificateVerifier::Create<HandshakeCheck>(std::move(check));
}

}  // namespace shoal
