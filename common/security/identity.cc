#include "common/security/identity.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/text/printable.h"

namespace shoal {
namespace {

constexpr char kScheme[] = "spiffe://";
constexpr char kRoles[] = "coordinator, ps/N, worker/N, worker, evaluator, operator or viewer";

bool IsDomainCharacter(char c) {
  return absl::ascii_islower(static_cast<unsigned char>(c)) ||
         absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
}

bool IsSegmentCharacter(char c) {
  return IsDomainCharacter(c) || absl::ascii_isupper(static_cast<unsigned char>(c));
}

absl::Status WrongIdentity(std::string_view uri, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("the identity \"", Printable(uri, kMaxNameBytes), "\" ", why,
                   "; it must be spiffe://TRUST_DOMAIN/job/JOB/ROLE with the role ", kRoles));
}

// Canonical numbers only, so that one identity has one text.
std::optional<int> ParseIdentityIndex(std::string_view text) {
  int index = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || index < 0 || index > kMaxIdentityIndex) return std::nullopt;
  if (std::to_string(index) != text) return std::nullopt;
  return index;
}

}  // namespace

const char* RoleName(Role role) {
  switch (role) {
    case Role::kCoordinator:
      return "coordinator";
    case Role::kPs:
      return "ps";
    case Role::kWorker:
      return "worker";
    case Role::kEvaluator:
      return "evaluator";
    case Role::kOperator:
      return "operator";
    case Role::kViewer:
      break;
  }
  return "viewer";
}

std::string Identity::RoleText() const {
  return index ? absl::StrCat(RoleName(role), "/", *index) : RoleName(role);
}

std::string Identity::ToUri() const {
  return absl::StrCat(kScheme, trust_domain, "/job/", job, "/", RoleText());
}

absl::Status CheckTrustDomain(std::string_view trust_domain) {
  if (!trust_domain.empty() && trust_domain.size() <= kMaxTrustDomainBytes &&
      std::all_of(trust_domain.begin(), trust_domain.end(), IsDomainCharacter)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the trust domain \"", Printable(trust_domain, kMaxNameBytes), "\" must be 1 to ",
      kMaxTrustDomainBytes, " lower-case letters, digits, '.', '-' and '_'"));
}

absl::Status CheckIdentityJob(std::string_view job) {
  if (!job.empty() && job != "." && job != ".." && job.size() < kMaxIdentityBytes &&
      std::all_of(job.begin(), job.end(), IsSegmentCharacter)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the job \"", Printable(job, kMaxNameBytes),
                   "\" must be letters, digits, '.', '-' and '_', and neither \".\" nor \"..\""));
}

absl::Status CheckRoleText(std::string_view role) {
  if (ParseIdentity(absl::StrCat(kScheme, "domain/job/job/", std::string(role))).ok())
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the role \"", Printable(role, kMaxNameBytes),
                                                 "\" must be ", kRoles, " with N from 0 to ",
                                                 kMaxIdentityIndex));
}

absl::StatusOr<Identity> ParseIdentity(std::string_view uri) {
  if (uri.size() > kMaxIdentityBytes) {
    return WrongIdentity(
        uri, absl::StrCat("has ", uri.size(), " bytes, at most ", kMaxIdentityBytes, " are read"));
  }
  if (!uri.starts_with(kScheme)) return WrongIdentity(uri, "does not begin with spiffe://");
  const std::vector<std::string> parts =
      absl::StrSplit(std::string(uri.substr(sizeof(kScheme) - 1)), '/');
  if (const absl::Status domain = CheckTrustDomain(parts[0]); !domain.ok())
    return WrongIdentity(uri, absl::StrCat("is wrong: ", domain.message()));
  if (parts.size() < 4 || parts.size() > 5 || parts[1] != "job")
    return WrongIdentity(uri, "has another form");
  if (const absl::Status job = CheckIdentityJob(parts[2]); !job.ok())
    return WrongIdentity(uri, absl::StrCat("is wrong: ", job.message()));

  const auto role = std::find_if(kAllRoles.begin(), kAllRoles.end(),
                                 [&](Role each) { return parts[3] == RoleName(each); });
  if (role == kAllRoles.end()) {
    return WrongIdentity(
        uri, absl::StrCat("has the unknown role \"", Printable(parts[3], kMaxNameBytes), "\""));
  }
  Identity identity = {
      .trust_domain = std::string(parts[0]), .job = std::string(parts[2]), .role = *role};
  const bool takes_index = *role == Role::kPs || *role == Role::kWorker;
  if (parts.size() == 5) {
    if (!takes_index) {
      return WrongIdentity(uri, absl::StrCat("has a segment after the role ", RoleName(*role)));
    }
    identity.index = ParseIdentityIndex(parts[4]);
    if (!identity.index) {
      return WrongIdentity(uri, absl::StrCat("has a wrong index: it must be 0 to ",
                                             kMaxIdentityIndex, ", without leading zeros"));
    }
  } else if (*role == Role::kPs) {
    return WrongIdentity(uri, "lacks the index of the ps");
  }
  return identity;
}

}  // namespace shoal
