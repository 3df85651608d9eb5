#include "common/rpc/tls/tls_session.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/security/permissions.h"

namespace shoal {
namespace {

constexpr unsigned kServerRefreshSeconds = 1;

// gRPC 1.51 has no setting for the version. Without a cipher suite that TLS 1.2 could use, only 1.3
// is left, whose suites are not of this list. gRPC reads the variable once.
void RequireTls13() { setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES256-GCM-SHA384", /*overwrite=*/1); }

// Checks the server's certificate at the end of a handshake, on gRPC's threads.
class ServerCheck : public grpc::experimental::ExternalCertificateVerifier {
 public:
  ServerCheck(std::shared_ptr<const TlsSession> session, std::string method,
              std::optional<int> index, std::shared_ptr<TlsSession::Server> server)
      : session_(std::move(session)),
        method_(std::move(method)),
        index_(index),
        server_(std::move(server)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>, grpc::Status* status) override {
    const grpc::string_ref pem = request->peer_cert();
    const absl::Status checked = Check({pem.data(), pem.size()});
    *status =
        grpc::Status(static_cast<grpc::StatusCode>(checked.code()), std::string(checked.message()));
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  absl::Status Check(std::string_view pem) const {
    SHOAL_ASSIGN_OR_RETURN(Certificate certificate, ReadCertificate(pem));
    SHOAL_RETURN_IF_ERROR(CheckServer(session_->own(), certificate.identity, method_, index_));
    SHOAL_RETURN_IF_ERROR(session_->CheckValid(certificate));
    MutexLock lock(&server_->mutex);
    server_->certificate = std::move(certificate);
    return absl::OkStatus();
  }

  const std::shared_ptr<const TlsSession> session_;
  const std::string method_;
  const std::optional<int> index_;
  const std::shared_ptr<TlsSession::Server> server_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<TlsSession>> TlsSession::Open(
    std::string directory, std::function<void(const std::string&)> warn) {
  RequireTls13();
  SHOAL_ASSIGN_OR_RETURN(TlsFiles files, ReadTlsFiles(directory, absl::Now()));
  return std::shared_ptr<TlsSession>(
      new TlsSession(std::move(directory), std::move(warn), std::move(files)));
}

TlsSession::TlsSession(std::string directory, std::function<void(const std::string&)> warn,
                       TlsFiles files)
    : directory_(std::move(directory)),
      warn_(std::move(warn)),
      own_(files.own.identity),
      files_(std::make_shared<const TlsFiles>(std::move(files))) {}

std::shared_ptr<const TlsFiles> TlsSession::files() const {
  MutexLock lock(&mutex_);
  return files_;
}

TlsSession::Content TlsSession::Read() const {
  Content content = {.files = ReadTlsFiles(directory_, absl::Now()), .revoked = Revocations()};
  if (!content.files.ok()) content.revoked = ReadRevocations(directory_);
  return content;
}

bool TlsSession::Refresh(Content content) {
  absl::Status taken = content.files.status();
  if (content.files.ok()) {
    if (*content.files == *files()) return false;
    taken = Take(*std::move(content.files));
  }
  if (taken.ok()) {
    warned_of_.clear();
    if (on_taken_) on_taken_(*files());
    return true;
  }
  AddRevocations(content.revoked);
  if (warn_ && warned_of_ != taken.message()) {
    warn_(absl::StrCat(taken.message(), "; the files that were read before stay in use"));
  }
  warned_of_ = std::string(taken.message());
  return false;
}

absl::Status TlsSession::Take(TlsFiles files) {
  if (files.own.identity != own_) {
    return absl::FailedPreconditionError(absl::StrCat(
        directory_, "/", kCertificateFile, " is the certificate of ", files.own.identity.ToUri(),
        ", and this process is ", own_.ToUri(), "; restart it to change that"));
  }
  if (served_ != nullptr) {
    SHOAL_RETURN_IF_ERROR(served_->ca.Replace(files.ca_pem));
    // gRPC reads the pair again each second, so one that does not match is soon replaced.
    SHOAL_RETURN_IF_ERROR(served_->key.Replace(files.key_pem));
    SHOAL_RETURN_IF_ERROR(served_->certificate.Replace(files.certificate_chain_pem));
  }
  auto taken = std::make_shared<const TlsFiles>(std::move(files));
  MutexLock lock(&mutex_);
  files_ = std::move(taken);
  return absl::OkStatus();
}

// Otherwise a wrong or expired file of this process would keep revoked peers in. No entry is
// forgotten: the directory may be incomplete.
void TlsSession::AddRevocations(const absl::StatusOr<Revocations>& revoked) {
  if (!revoked.ok()) return;
  auto taken = std::make_shared<TlsFiles>(*files());
  taken->revoked.Add(*revoked);
  MutexLock lock(&mutex_);
  files_ = std::move(taken);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsSession::ForServer() {
  const std::shared_ptr<const TlsFiles> files = this->files();
  SHOAL_ASSIGN_OR_RETURN(ReplaceableFile key, ReplaceableFile::Create(files->key_pem));
  SHOAL_ASSIGN_OR_RETURN(ReplaceableFile certificate,
                         ReplaceableFile::Create(files->certificate_chain_pem));
  SHOAL_ASSIGN_OR_RETURN(ReplaceableFile ca, ReplaceableFile::Create(files->ca_pem));
  served_ = std::make_unique<ServedFiles>(
      ServedFiles{std::move(key), std::move(certificate), std::move(ca)});
  provider_ = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      served_->key.path(), served_->certificate.path(), served_->ca.path(), kServerRefreshSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider_);
  // Both must be asked for; without the first, gRPC would accept any certificate.
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> TlsSession::ForChannel(std::string method,
                                                                 std::optional<int> index,
                                                                 std::shared_ptr<Server> server) {
  const std::shared_ptr<const TlsFiles> files = this->files();
  auto provider = std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
      files->ca_pem, std::vector<grpc::experimental::IdentityKeyCertPair>{
                         {files->key_pem, files->certificate_chain_pem}});
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::move(provider));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  // The identity counts, not the name or address that was dialled.
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<ServerCheck>(
          shared_from_this(), std::move(method), index, std::move(server)));
  return grpc::experimental::TlsCredentials(options);
}

absl::StatusOr<Certificate> TlsSession::ClientOf(const grpc::AuthContext& context) const {
  const std::vector<grpc::string_ref> pem = context.FindPropertyValues("x509_pem_cert");
  if (!context.IsPeerAuthenticated() || pem.size() != 1) {
    return absl::UnauthenticatedError("the client shows no certificate");
  }
  return ReadCertificate({pem[0].data(), pem[0].size()});
}

absl::Status TlsSession::CheckValid(const Certificate& peer) const {
  SHOAL_RETURN_IF_ERROR(CheckDates(peer, absl::Now(), peer.identity.RoleText()));
  return files()->revoked.Check(peer);
}

}  // namespace shoal
