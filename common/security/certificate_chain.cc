#include "common/security/certificate_chain.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
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

struct ParsedChain {
  std::vector<X509Ptr> chain;  // not empty
  std::vector<X509Ptr> authorities;
};

// Returns kUnauthenticated for a text that holds no certificates.
absl::StatusOr<ParsedChain> ParseChain(std::string_view chain_pem, std::string_view ca_pem) {
  absl::StatusOr<std::vector<X509Ptr>> chain = ParseCertificates(chain_pem);
  if (!chain.ok()) return absl::UnauthenticatedError(chain.status().message());
  absl::StatusOr<std::vector<X509Ptr>> authorities = ParseCertificates(ca_pem);
  if (!authorities.ok()) return absl::UnauthenticatedError(authorities.status().message());
  return ParsedChain{*std::move(chain), *std::move(authorities)};
}

}  // namespace

absl::Status CheckIssued(std::string_view chain_pem, std::string_view ca_pem, absl::Time now) {
  SHOAL_ASSIGN_OR_RETURN(const ParsedChain parsed, ParseChain(chain_pem, ca_pem));
  const absl::Status verified = VerifyChain(parsed.chain, parsed.authorities, now,
                                            {X509_PURPOSE_SSL_CLIENT}, FirstDates::kIgnored);
  if (verified.ok()) return verified;
  return absl::Status(verified.code(),
                      absl::StrCat(Claimed(parsed.chain[0].get()), ": ", verified.message()));
}

absl::Status CheckLeadsToCa(std::string_view chain_pem, std::string_view ca_pem, absl::Time now,
                            const std::string& name) {
  SHOAL_ASSIGN_OR_RETURN(const ParsedChain parsed, ParseChain(chain_pem, ca_pem));
  const absl::Status verified = VerifyChain(parsed.chain, parsed.authorities, now, {});
  if (!absl::IsUnauthenticated(verified)) return verified;
  return absl::UnauthenticatedError(absl::StrCat(
      name, ": the certificate leads to no CA that is trusted now: ", verified.message(),
      "; issue one of a CA in ca.crt, or add its CA there"));
}

}  // namespace shoal
