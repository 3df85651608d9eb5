#include "common/security/certificate_chain.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/security/openssl_handles.h"

namespace shoal {
namespace {

// The part of a name or URI that a text quotes. A stranger may have made it long.
constexpr size_t kMaxQuotedBytes = 200;

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", text.substr(0, kMaxQuotedBytes),
                      text.size() > kMaxQuotedBytes ? "..." : "", "\"");
}

// Returns what the certificate says about its holder. Nobody has confirmed it.
std::string Claimed(X509* certificate) {
  const std::vector<std::string> uris = UrisOf(certificate);
  return absl::StrCat("the certificate of ", uris.empty() ? "nobody" : Quoted(uris[0]),
                      " with the serial ", SerialOf(certificate).substr(0, kMaxQuotedBytes),
                      ", issued by ", Quoted(NameText(X509_get_issuer_name(certificate))));
}

}  // namespace

absl::Status CheckIssued(std::string_view chain_pem, std::string_view ca_pem, absl::Time now) {
  const absl::StatusOr<std::vector<X509Ptr>> chain = ParseCertificates(chain_pem);
  if (!chain.ok()) return absl::UnauthenticatedError(chain.status().message());
  SHOAL_ASSIGN_OR_RETURN(const std::vector<X509Ptr> authorities, ParseCertificates(ca_pem));
  const absl::Status verified =
      VerifyChain(*chain, authorities, now, {X509_PURPOSE_SSL_CLIENT}, FirstDates::kIgnored);
  if (verified.ok()) return verified;
  return absl::Status(verified.code(),
                      absl::StrCat(Claimed(chain->front().get()), ": ", verified.message()));
}

}  // namespace shoal
