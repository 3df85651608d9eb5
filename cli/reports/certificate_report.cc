#include "cli/reports/certificate_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

namespace shoal {
namespace {

void AddCertificateLine(const char* name, const std::string& value, std::string* text) {
  if (!value.empty()) absl::StrAppend(text, name, value, "\n");
}

std::string ProblemOf(const CertificateDescription& certificate) {
  if (certificate.is_ca || certificate.certificate.ok()) return "";
  return std::string(certificate.certificate.status().message());
}

nlohmann::json IdentityJson(const CertificateDescription& certificate) {
  if (!certificate.certificate.ok()) return nullptr;
  const Identity& identity = certificate.certificate->identity;
  nlohmann::json json = {{"trust_domain", identity.trust_domain},
                         {"job", identity.job},
                         {"role", RoleName(identity.role)},
                         {"index", nullptr}};
  if (identity.index) json["index"] = *identity.index;
  return json;
}

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
}

}  // namespace

std::string CertificatesText(const std::vector<CertificateDescription>& certificates) {
  std::string text;
  for (size_t i = 0; i < certificates.size(); ++i) {
    const CertificateDescription& each = certificates[i];
    absl::StrAppend(&text, i == 0 ? "" : "\n", "certificate ", i + 1, " of ", certificates.size(),
                    each.is_ca ? ", a CA" : "", "\n");
    AddCertificateLine("  identity:   ", absl::StrJoin(each.uris, ", "), &text);
    AddCertificateLine("  addresses:  ", absl::StrJoin(each.addresses, ", "), &text);
    AddCertificateLine("  subject:    ", each.subject, &text);
    AddCertificateLine("  issuer:     ", each.issuer, &text);
    AddCertificateLine("  serial:     ", each.serial, &text);
    AddCertificateLine("  valid from: ", UtcText(each.not_before), &text);
    AddCertificateLine("  valid to:   ", UtcText(each.not_after), &text);
    AddCertificateLine("  key:        ", each.key, &text);
    AddCertificateLine("  SHA-256:    ", each.sha256, &text);
    AddCertificateLine("  problem:    ", ProblemOf(each), &text);
  }
  return text;
}

std::string CertificatesJson(const std::vector<CertificateDescription>& certificates) {
  nlohmann::json array = nlohmann::json::array();
  for (const CertificateDescription& each : certificates) {
    nlohmann::json json = {{"identity", IdentityJson(each)},
                           {"uris", each.uris},
                           {"addresses", each.addresses},
                           {"subject", each.subject},
                           {"issuer", each.issuer},
                           {"serial", each.serial},
                           {"not_before", Rfc3339(each.not_before)},
                           {"not_after", Rfc3339(each.not_after)},
                           {"is_ca", each.is_ca},
                           {"key", each.key},
                           {"sha256", each.sha256},
                           {"problem", nullptr}};
    if (const std::string problem = ProblemOf(each); !problem.empty()) json["problem"] = problem;
    array.push_back(std::move(json));
  }
  // Names in certificates may be no UTF-8, which nlohmann would not write otherwise.
  return array.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace shoal
