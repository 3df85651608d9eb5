#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/identity.h"

namespace shoal {

// Certificates as text and bytes. The functions are stateless: any thread may call them.

// Max certificates in one text: a chain, or the CAs that a daemon trusts.
inline constexpr size_t kMaxCertificates = 16;
// Max size of a PEM text with certificates or a key.
inline constexpr size_t kMaxPemBytes = size_t{64} << 10;

// The certificate of a task or a person. Plain data.
struct Certificate {
  Identity identity;
  std::string serial;  // lower-case hex digits without leading zeros
  absl::Time not_before;
  absl::Time not_after;

  bool operator==(const Certificate&) const = default;
};

// Reads the certificate of a peer or of this process: the first one in a PEM text (gRPC's property
// `x509_pem_cert`), or DER. Applies the rules of a SPIFFE X509-SVID to it: exactly one URI, which
// is an identity of Shoal; not a CA; a critical key usage with digital signatures and without
// certificate signing; an extended key usage, if there is one, for servers and clients. Does not
// check signatures or dates; TLS does. Returns kUnauthenticated, which says which rule is broken.
absl::StatusOr<Certificate> ReadCertificate(std::string_view pem_or_der);

// Returns OK if `certificate` is valid at `now`. Else kUnauthenticated: expired since a date, or
// not valid before one. `name` says whose certificate or which file it is.
absl::Status CheckDates(const Certificate& certificate, absl::Time now, const std::string& name);

// "2026-03-01 12:00:00 UTC".
std::string UtcText(absl::Time time);

// A certificate for people, a CA's too.
struct CertificateDescription {
  std::string subject;  // RFC 2253, "CN=mnist"; may be empty
  std::string issuer;
  std::string serial;  // as in Certificate
  absl::Time not_before;
  absl::Time not_after;
  std::vector<std::string> uris;
  std::vector<std::string> addresses;  // DNS names and IP addresses
  bool is_ca = false;
  std::string key;     // "EC 256 bits", "RSA 2048 bits"
  std::string sha256;  // of the DER, lower-case hex digits
  // The certificate as ReadCertificate() returns it, or its error. An error for a CA too.
  absl::StatusOr<Certificate> certificate = absl::UnknownError("");
};

// Describes all certificates of a PEM text, or the one of DER. Ignores other blocks, such as keys.
// Returns kDataLoss if there is none, more than kMaxCertificates, or a damaged one.
absl::StatusOr<std::vector<CertificateDescription>> DescribeCertificates(
    std::string_view pem_or_der);

}  // namespace shoal
