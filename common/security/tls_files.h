#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/files/private_file.h"
#include "common/security/certificate.h"
#include "common/security/revocations.h"

namespace shoal {

// The files of a TLS directory, as cert-manager and `shoal cert issue` name them.
inline constexpr char kCaFile[] = "ca.crt";            // the CAs that are trusted, PEM
inline constexpr char kCertificateFile[] = "tls.crt";  // own certificate, then intermediates, PEM
inline constexpr char kKeyFile[] = "tls.key";          // own private key, PEM, not encrypted
inline constexpr char kRevocationsFile[] = "revoked";  // optional; Revocations says its form

// The checked content of a TLS directory. Plain data.
struct TlsFiles {
  std::string ca_pem;
  std::string certificate_chain_pem;
  std::string key_pem;  // secret: never log it
  Certificate own;      // identity, serial, dates
  Revocations revoked;

  bool operator==(const TlsFiles&) const = default;
};

// Reads and checks the files in `directory`:
//   - each has at most kMaxPemBytes and is a regular file; symbolic links are followed, because
//     Kubernetes writes secrets as links;
//   - no stranger can read the key: mode 0600 or less. The group may read it if root owns the file
//     and this process does not run as root (systemd credentials, fsGroup), or if the directory is
//     a volume of Kubernetes (it has an entry "..data") or a directory in one;
//   - the certificate passes ReadCertificate() and is valid at `now`;
//   - the key belongs to the certificate;
//   - the chain leads to a CA of ca.crt, which has at most kMaxCertificates, all of them CAs,
//     such as an old and a new one;
//   - every line of `revoked` is an entry, if the file exists. Its own certificate is not revoked.
// Returns kNotFound, kPermissionDenied, kFailedPrecondition or kUnauthenticated; the message names
// the file and the next command. While another process replaces the files, the key may not belong
// to the certificate for a moment: a daemon keeps what it has and reads again.
absl::StatusOr<TlsFiles> ReadTlsFiles(const std::string& directory, absl::Time now);

// Checks the rule above for `key`, a key or another secret that was read from `directory`. Returns
// kPermissionDenied, with the next command, if strangers can read it.
absl::Status CheckKeyMode(const HeldDirectory& directory, const OwnedFile& key);

// Reads only `revoked`. Returns an empty list if there is no such file. While ReadTlsFiles()
// fails, a daemon adds these entries to those that it has.
absl::StatusOr<Revocations> ReadRevocations(const std::string& directory);

}  // namespace shoal
