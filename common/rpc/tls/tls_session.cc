#include "common/rpc/tls/tls_session.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/tls/decrypted_reads.h"
#include "common/rpc/tls/handshake_check.h"
#include "common/security/certificate_chain.h"
#include "common/security/permissions.h"

namespace shoal {
namespace {

constexpr unsigned kServerRefreshSeconds = 1;

// IsOutdated() leaves a server's certificate this long before its end: a sixth of its life, but at
// most an hour. cert-manager renews after two thirds.
constexpr int kRenewalPart = 6;
constexpr absl::Duration kMaxRenewal = absl::Hours(1);

absl::Time RenewalOf(const Certificate& certificate) {
  const absl::Duration life = certificate.not_after - certificate.not_before;
  return certificate.not_after - std::min(life / kRenewalPart, kMaxRenewal);
}

// gRPC 1.51 has no setting for the version. Without a cipher suite that TLS 1.2 could use, only 1.3
// is left, whose suites are not of this list. gRPC reads the variable once.
void RequireTls13() { setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES256-GCM-SHA384", /*overwrite=*/1); }

absl::StatusOr<TlsSession::Peer> ReadPeer(ShownCertificates shown) {
  SHOAL_ASSIGN_OR_RETURN(Certificate read, ReadCertificate(shown.own));
  return TlsSession::Peer{.certificate = std::move(read), .chain_pem = std::move(shown.chain)};
}

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
    SHOAL_ASSIGN_OR_RETURN(const ServedFiles next, ServedFiles::Create(files));
    // gRPC reads the pair again each second, so one that does not match is soon replaced.
    SHOAL_RETURN_IF_ERROR(served_->key.Take(next.key));
    SHOAL_RETURN_IF_ERROR(served_->certificate.Take(next.certificate));
  }
  auto taken = std::make_shared<const TlsFiles>(std::move(files));
  MutexLock lock(&mutex_);
  if (taken->ca_pem != files_->ca_pem) ++ca_number_;
  files_ = std::move(taken);
  return absl::OkStatus();
}

absl::StatusOr<TlsSession::ServedFiles> TlsSession::ServedFiles::Create(const TlsFiles& files) {
  SHOAL_ASSIGN_OR_RETURN(ReplaceableFile key, ReplaceableFile::Create(files.key_pem));
  SHOAL_ASSIGN_OR_RETURN(ReplaceableFile certificate,
                         ReplaceableFile::Create(files.certificate_chain_pem));
  return ServedFiles{std::move(key), std::move(certificate)};
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

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsSession::ForServer(
    std::function<void(const absl::Status&)> on_rejected) {
  LimitDecryptedReads();
  SHOAL_ASSIGN_OR_RETURN(ServedFiles served, ServedFiles::Create(*files()));
  served_ = std::make_unique<ServedFiles>(std::move(served));
  provider_ = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      served_->key.path(), served_->certificate.path(), kServerRefreshSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider_);
  options.watch_identity_key_cert_pairs();
  // gRPC checks that the client has the key. This process verifies the chain itself, so gRPC needs
  // no CAs: here, before HTTP/2 begins, and again for each stream, in CheckPeer(). gRPC's own
  // verification would tell nobody whom it rejects and why.
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_certificate_verifier(
      MakeHandshakeCheck([session = shared_from_this(),
                          on_rejected = std::move(on_rejected)](const ShownCertificates& client) {
        absl::Status issued = session->CheckIssuer(client.chain);
        if (!issued.ok() && on_rejected) on_rejected(issued);
        return issued;
      }));
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> TlsSession::ForChannel(std::string method,
                                                                 std::optional<int> index,
                                                                 std::shared_ptr<Server> server) {
  const std::shared_ptr<const TlsFiles> files = this->files();
  server->files = files;
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
      MakeHandshakeCheck([session = shared_from_this(), method = std::move(method), index,
                          server = std::move(server)](const ShownCertificates& shown) {
        return session->MeetServer(shown, method, index, server.get());
      }));
  return grpc::experimental::TlsCredentials(options);
}

absl::Status TlsSession::MeetServer(const ShownCertificates& shown, const std::string& method,
                                    std::optional<int> index, Server* server) const {
  SHOAL_ASSIGN_OR_RETURN(Peer peer, ReadPeer(shown));
  SHOAL_RETURN_IF_ERROR(CheckServer(own_, peer.certificate.identity, method, index));
  SHOAL_RETURN_IF_ERROR(CheckPeer(&peer));
  MutexLock lock(&server->mutex);
  server->peer = std::move(peer);
  server->shaken_at = absl::Now();
  return absl::OkStatus();
}

absl::StatusOr<TlsSession::Peer> TlsSession::ClientOf(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> pem =
      context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (!context.IsPeerAuthenticated() || pem.size() != 1) {
    return absl::UnauthenticatedError("the client shows no certificate");
  }
  const std::vector<grpc::string_ref> chain =
      context.FindPropertyValues(GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME);
  return ReadPeer(ShownCertificates(pem[0], chain.empty() ? grpc::string_ref() : chain[0]));
}

absl::Status TlsSession::CheckValid(const Certificate& certificate) const {
  SHOAL_RETURN_IF_ERROR(CheckDates(certificate, absl::Now(), certificate.identity.RoleText()));
  return files()->revoked.Check(certificate);
}

absl::Status TlsSession::CheckPeer(Peer* peer) const {
  SHOAL_RETURN_IF_ERROR(CheckValid(peer->certificate));
  const absl::Time now = absl::Now();
  std::shared_ptr<const TlsFiles> files;
  uint64_t ca_number = 0;
  bool verified = false;
  {
    MutexLock lock(&mutex_);
    files = files_;
    ca_number = ca_number_;
    verified = verified_.Contains(peer->chain_pem, files, now);
  }
  if (peer->ca_number == ca_number) return absl::OkStatus();
  if (!verified) {
    SHOAL_RETURN_IF_ERROR(
        CheckLeadsToCa(peer->chain_pem, files->ca_pem, now, peer->certificate.identity.ToUri()));
    MutexLock lock(&mutex_);
    verified_.Add(peer->chain_pem, files, now);
  }
  peer->ca_number = ca_number;
  return absl::OkStatus();
}

absl::Status TlsSession::CheckPeer(Server* server) const {
  MutexLock lock(&server->mutex);
  return server->peer.has_value() ? CheckPeer(&*server->peer) : absl::OkStatus();
}

bool TlsSession::IsOutdated(const Server& server) const {
  const std::shared_ptr<const TlsFiles> now = files();
  const TlsFiles& then = *server.files;
  if (now.get() != &then && (now->certificate_chain_pem != then.certificate_chain_pem ||
                             now->key_pem != then.key_pem || now->ca_pem != then.ca_pem)) {
    return true;
  }
  MutexLock lock(&server.mutex);
  if (!server.peer.has_value()) return false;
  // A handshake after this time has met a server that has no later certificate yet.
  const absl::Time renewal = RenewalOf(server.peer->certificate);
  return server.shaken_at < renewal && renewal <= absl::Now();
}

absl::Status TlsSession::CheckIssuer(std::string_view chain_pem) const {
  const absl::Time now = absl::Now();
  const std::shared_ptr<const TlsFiles> files = this->files();
  const absl::Status issued = CheckIssued(chain_pem, files->ca_pem, now);
  if (issued.ok()) {
    MutexLock lock(&mutex_);
    verified_.Add(chain_pem, files, now);
    return issued;
  }
  return absl::Status(issued.code(),
                      absl::StrCat("no CA in ", kCaFile, " has issued ", issued.message(),
                                   "; if the client belongs to this job, add its CA there"));
}

std::string TlsSession::ClosedBy(const Certificate& server) const {
  const std::shared_ptr<const TlsFiles> files = this->files();
  const auto chain = DescribeCertificates(files->certificate_chain_pem);
  return absl::StrCat(
      "closes the connection at the end of the handshake: ", server.identity.ToUri(),
      " has seen the certificate of ", own_.ToUri(), " with the serial ", files->own.serial,
      ", issued by \"", chain.ok() ? chain->front().issuer : "",
      "\", and probably does not know that CA; add it to ", kCaFile,
      " there, or use a certificate of its CA. The log there says more");
}

}  // namespace shoal
