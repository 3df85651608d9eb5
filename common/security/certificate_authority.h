#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/identity.h"

namespace shoal {

// The files of a CA's directory.
inline constexpr char kAuthorityCertificateFile[] = "ca.crt";
inline constexpr char kAuthorityKeyFile[] = "ca.key";  // secret: whoever has it can be anyone

inline constexpr int kAuthorityDays = 3650;
inline constexpr int kCertificateDays = 365;
inline constexpr int kMaxCertificateDays = 36500;

// Returns kInvalidArgument if `address` is neither an IP address nor a host name.
absl::Status CheckCertificateAddress(const std::string& address);

// A certificate authority of one job, for those without a PKI of their own. Keys are ECDSA P-256.
// Immutable after Open(); any thread may call Issue().
class CertificateAuthority {
 public:
  struct CreateOptions {
    std::string trust_domain;
    std::string job;
    int days = kAuthorityDays;
    absl::Time now;
  };
  // Makes a key and a certificate that it signs itself, and writes both into `directory` (ca.key,
  // ca.crt; files 0600, the directory 0700). Makes the directory and its missing parents. Returns
  // kAlreadyExists if one of the files exists, kFailedPrecondition if others may read or write the
  // directory, kInvalidArgument for a name that cannot be part of an identity.
  static absl::Status Create(const std::string& directory, const CreateOptions& options);

  // Reads the CA in `directory`. Returns kNotFound, kPermissionDenied if others may read the key,
  // kFailedPrecondition if the files do not belong together or are of no CA that Create() made.
  static absl::StatusOr<CertificateAuthority> Open(const std::string& directory);

  const std::string& trust_domain() const { return trust_domain_; }
  const std::string& job() const { return job_; }
  absl::Time not_after() const { return not_after_; }

  struct IssueOptions {
    std::string role;                    // "ps/0", as Identity::RoleText()
    std::vector<std::string> addresses;  // DNS names and IP addresses, for clients that check them
    int days = kCertificateDays;
    absl::Time now;
  };
  struct Issued {
    Identity identity;
    std::string certificate_pem;
    std::string key_pem;  // secret
    std::string ca_pem;
    absl::Time not_after;
  };
  // Makes a new key and a certificate for it, valid from a few minutes before `now`. Writes
  // nothing. Returns kInvalidArgument for a wrong role or address, kFailedPrecondition if the CA
  // expires before the certificate would.
  absl::StatusOr<Issued> Issue(const IssueOptions& options) const;

 private:
  CertificateAuthority() = default;

  std::string trust_domain_;
  std::string job_;
  absl::Time not_after_;
  std::string certificate_pem_;
  std::string key_pem_;  // secret
};

// Writes an issued certificate as a TLS directory (tls_files.h): files 0600, the directory 0700.
// Makes the directory and its missing parents. Returns kAlreadyExists if it has such a file
// already; a file is never overwritten. Removes what it has written if it fails.
absl::Status WriteTlsDirectory(const std::string& directory,
                               const CertificateAuthority::Issued& issued);

}  // namespace shoal
