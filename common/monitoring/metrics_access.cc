#include "common/monitoring/metrics_access.h"

#include <gnutls/gnutls.h>

#include <filesystem>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/files/durable_file.h"
#include "common/files/private_file.h"
#include "common/log/logging.h"
#include "common/security/tls_files.h"

namespace shoal {
namespace {

constexpr size_t kMaxTokenBytes = 4096;
constexpr char kBearer[] = "Bearer ";

// Returns the token in the file, which is not empty. Errors are those of HeldDirectory and
// CheckKeyMode(), and kFailedPrecondition for an empty file.
absl::StatusOr<std::string> ReadToken(const std::string& file) {
  const std::filesystem::path path = AbsolutePath(file);
  SHOAL_ASSIGN_OR_RETURN(const HeldDirectory directory, HeldDirectory::Open(path.parent_path()));
  SHOAL_ASSIGN_OR_RETURN(OwnedFile token, directory.Read(path.filename(), kMaxTokenBytes));
  SHOAL_RETURN_IF_ERROR(CheckKeyMode(directory, token));
  absl::StripAsciiWhitespace(&token.content);
  if (token.content.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(token.path, " has no token; `openssl rand -hex 32` makes one"));
  }
  return std::move(token.content);
}

// The time does not depend on where the texts differ.
bool EqualInConstantTime(std::string_view a, std::string_view b) {
  return a.size() == b.size() && gnutls_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

MetricsAccess::MetricsAccess(HttpSecurity security) : security_(std::move(security)) {
  if (!security_.token_file.empty()) Token();
}

std::optional<HttpReply> MetricsAccess::Check(const HttpRequest& request) {
  const bool by_token = !security_.token_file.empty();
  if (!security_.tls && !by_token) return std::nullopt;
  if (by_token && HasToken(request.authorization)) return std::nullopt;
  const auto& certificate = request.client_certificate;
  if (!certificate.ok()) {
    return HttpReply{403, absl::StrCat("the CA does not verify the client's certificate: ",
                                       std::string(certificate.status().message()), "\n")};
  }
  if (!certificate->empty() && security_.check_client != nullptr) {
    const absl::Status allowed = security_.check_client(*certificate);
    if (allowed.ok()) return std::nullopt;
    return HttpReply{403, absl::StrCat(std::string(allowed.message()), "\n")};
  }
  if (by_token && !request.authorization.empty()) {
    return HttpReply{401, IsTokenUsable()
                              ? "the token is not the one in the file of --metrics_token_file\n"
                              : "the file of --metrics_token_file cannot be used; the log of the "
                                "daemon says why\n"};
  }
  const char* const needs = !security_.tls ? "\"Authorization: Bearer TOKEN\""
                            : !by_token    ? "a client certificate"
                                        : "a client certificate or \"Authorization: Bearer TOKEN\"";
  return HttpReply{401, absl::StrCat("/metrics needs ", needs, "\n")};
}

bool MetricsAccess::HasToken(const std::string& authorization) {
  if (!absl::StartsWithIgnoreCase(authorization, kBearer)) return false;
  const std::string token = Token();
  std::string given = authorization.substr(sizeof(kBearer) - 1);
  absl::StripAsciiWhitespace(&given);
  return !token.empty() && EqualInConstantTime(given, token);
}

std::string MetricsAccess::Token() {
  {
    MutexLock lock(&mutex_);
    if (reading_) return token_;
    reading_ = true;
  }
  absl::StatusOr<std::string> token = ReadToken(security_.token_file);
  MutexLock lock(&mutex_);
  reading_ = false;
  if (result_.IsNewFailure(token.status())) {
    LogWarning(absl::StrCat("--metrics_token_file: ", std::string(token.status().message()),
                            ". No token lets anybody see /metrics; the file is read again for "
                            "each request"));
  }
  token_ = token.ok() ? *std::move(token) : "";
  return token_;
}

bool MetricsAccess::IsTokenUsable() {
  MutexLock lock(&mutex_);
  return !token_.empty();
}

}  // namespace shoal
