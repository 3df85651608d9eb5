#include "common/security/tls_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/text/shell_word.h"
#include "common/files/private_file.h"
#include "common/security/openssl_handles.h"

namespace shoal {
namespace {

// The entries by which a volume of Kubernetes is known, seen from the volume and from a directory
// in it: the kubelet writes ..DATE/tls.key or ..DATE/0/tls.key, and links ..data to ..DATE.
constexpr char kVolumeLink[] = "..data";
constexpr char kVolumeLinkAbove[] = "../../..data";

// Adds the path. Damage means a wrong configuration here: nothing that was computed is lost.
absl::Status InFile(const absl::Status& status, const std::string& path) {
  const std::string text = absl::StrCat(path, ": ", status.message());
  return absl::IsDataLoss(status) ? absl::FailedPreconditionError(text)
                                  : absl::Status(status.code(), text);
}

// Adds what to do where the directory or a file of it is missing.
absl::Status WithDirectoryAdvice(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(absl::StrCat(status.message(), "; a TLS directory holds ", kCaFile,
                                          ", ", kCertificateFile, " and ", kKeyFile,
                                          ", as `shoal cert issue` or cert-manager write them"));
}

absl::StatusOr<OwnedFile> ReadTlsFile(const HeldDirectory& directory, const std::string& name) {
  absl::StatusOr<OwnedFile> file = directory.Read(name, kMaxPemBytes);
  if (file.ok()) return file;
  if (absl::IsDataLoss(file.status()))
    return absl::FailedPreconditionError(file.status().message());
  return WithDirectoryAdvice(file.status());
}

}  // namespace

// PostgreSQL's rule for key files, and one more for Kubernetes, whose volumes root owns even where
// containers run as root.
absl::Status CheckKeyMode(const HeldDirectory& directory, const OwnedFile& key) {
  const bool kubernetes = directory.Has(kVolumeLink) || directory.Has(kVolumeLinkAbove);
  const bool group_may_read = kubernetes || (key.owner == 0 && geteuid() != 0);
  const uint32_t forbidden = group_may_read ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
  if ((key.mode & forbidden) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrFormat(
      "%s has mode %04o: other users of this machine can read this secret; %s", key.path, key.mode,
      kubernetes ? std::string("set `defaultMode: 0440` for the secret in the volumes of the pod")
                 : absl::StrCat("type `chmod 600 ", ShellWord(key.path), "`")));
}

namespace {

absl::StatusOr<std::vector<X509Ptr>> ParseFile(const HeldDirectory& directory, const char* name,
                                               const std::string& pem) {
  absl::StatusOr<std::vector<X509Ptr>> certificates = ParseCertificates(pem);
  if (!certificates.ok()) return InFile(certificates.status(), directory.PathOf(name));
  if (pem.find("-----BEGIN ") == std::string::npos) {  // gRPC reads nothing else
    return absl::FailedPreconditionError(
        absl::StrCat(directory.PathOf(name), " is DER; convert it: openssl x509 -inform DER -in ",
                     ShellWord(directory.PathOf(name))));
  }
  return certificates;
}

absl::Status CheckKeyOf(X509* certificate, const std::string& key_pem,
                        const HeldDirectory& directory) {
  const absl::StatusOr<KeyPtr> key = ParsePrivateKey(key_pem);
  if (!key.ok()) return InFile(key.status(), directory.PathOf(kKeyFile));
  const EVP_PKEY* expected = X509_get0_pubkey(certificate);
  const bool same = expected != nullptr && EVP_PKEY_eq(expected, key->get()) == 1;
  TakeOpenSslError();
  if (same) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(directory.PathOf(kKeyFile), " is not the key of the certificate in ",
                   directory.PathOf(kCertificateFile),
                   "; take both from the same issue, and replace them together"));
}

absl::Status CheckAuthorities(const std::vector<X509Ptr>& authorities,
                              const HeldDirectory& directory) {
  size_t number = 0;
  for (const X509Ptr& each : authorities) {
    ++number;
    if (IsAuthority(each.get())) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        directory.PathOf(kCaFile), ": certificate ", number, " (",
        NameText(X509_get_subject_name(each.get())),
        ") is not of a certificate authority; everyone with a certificate could let others in"));
  }
  return absl::OkStatus();
}

// Verifies `chain` as a peer does, once as that of a server and once as that of a client.
absl::Status CheckChain(const std::vector<X509Ptr>& chain, const std::vector<X509Ptr>& authorities,
                        absl::Time now, const HeldDirectory& directory) {
  const absl::Status verified =
      VerifyChain(chain, authorities, now, {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT});
  if (!absl::IsUnauthenticated(verified)) return verified;
  return absl::UnauthenticatedError(
      absl::StrCat(directory.PathOf(kCertificateFile), ": the chain does not lead to a CA in ",
                   directory.PathOf(kCaFile), ": ", verified.message(), "; ", kCaFile,
                   " needs the root that has issued the certificate, and ", kCertificateFile,
                   " every intermediate between them"));
}

absl::StatusOr<Revocations> ReadRevocationsIn(const HeldDirectory& directory) {
  absl::StatusOr<OwnedFile> file = directory.Read(kRevocationsFile, kMaxPemBytes);
  const std::string path = directory.PathOf(kRevocationsFile);
  if (file.ok()) return Revocations::Parse(file->content, path);
  if (absl::IsDataLoss(file.status()))
    return absl::FailedPreconditionError(file.status().message());
  if (!absl::IsNotFound(file.status())) return file.status();
  // A link that leads nowhere must not let anyone in.
  if (!directory.Has(kRevocationsFile)) return Revocations();
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is a link that leads nowhere; point it to a file, or remove it"));
}

}  // namespace

absl::StatusOr<TlsFiles> ReadTlsFiles(const std::string& directory_path, absl::Time now) {
  const absl::StatusOr<HeldDirectory> opened = HeldDirectory::Open(directory_path);
  if (!opened.ok()) return WithDirectoryAdvice(opened.status());
  const HeldDirectory& directory = *opened;
  SHOAL_ASSIGN_OR_RETURN(OwnedFile key, ReadTlsFile(directory, kKeyFile));
  SHOAL_ASSIGN_OR_RETURN(OwnedFile chain_file, ReadTlsFile(directory, kCertificateFile));
  SHOAL_ASSIGN_OR_RETURN(OwnedFile ca, ReadTlsFile(directory, kCaFile));
  SHOAL_RETURN_IF_ERROR(CheckKeyMode(directory, key));

  SHOAL_ASSIGN_OR_RETURN(const std::vector<X509Ptr> chain,
                         ParseFile(directory, kCertificateFile, chain_file.content));
  const std::string certificate_path = directory.PathOf(kCertificateFile);
  absl::StatusOr<Certificate> own = ReadCertificate(chain_file.content);
  if (!own.ok()) return InFile(own.status(), certificate_path);
  SHOAL_RETURN_IF_ERROR(CheckDates(*own, now, certificate_path));
  SHOAL_RETURN_IF_ERROR(CheckKeyOf(chain[0].get(), key.content, directory));

  SHOAL_ASSIGN_OR_RETURN(const std::vector<X509Ptr> authorities,
                         ParseFile(directory, kCaFile, ca.content));
  SHOAL_RETURN_IF_ERROR(CheckAuthorities(authorities, directory));
  SHOAL_RETURN_IF_ERROR(CheckChain(chain, authorities, now, directory));

  SHOAL_ASSIGN_OR_RETURN(Revocations revoked, ReadRevocationsIn(directory));
  if (const absl::Status status = revoked.Check(*own); !status.ok())
    return InFile(status, certificate_path);
  return TlsFiles{.ca_pem = std::move(ca.content),
                  .certificate_chain_pem = std::move(chain_file.content),
                  .key_pem = std::move(key.content),
                  .own = *std::move(own),
                  .revoked = std::move(revoked)};
}

absl::StatusOr<Revocations> ReadRevocations(const std::string& directory_path) {
  SHOAL_ASSIGN_OR_RETURN(const HeldDirectory directory, HeldDirectory::Open(directory_path));
  return ReadRevocationsIn(directory);
}

}  // namespace shoal
