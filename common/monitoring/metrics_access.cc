#include "common/monitoring/metrics_access.h"

#include <gnutls/gnutls.h>

#include <fstream>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/log/logging.h"

namespace shoal {
namespace {

constexpr size_t kMaxTokenBytes = 4096;
constexpr char kBearer[] = "Bearer ";

// Returns the token in the file; empty if there is none.
std::string ReadToken(const std::string& file) {
  std::string text(kMaxTokenBytes + 1, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || in.gcount() > static_cast<std::streamsize>(kMaxTokenBytes)) return "";
  text.resize(in.gcount());
  absl::StripAsciiWhitespace(&text);
  return text;
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
    return HttpReply{401, "the token is not the one in the file of --metrics_token_file\n"};
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
  std::string token = ReadToken(security_.token_file);
  MutexLock lock(&mutex_);
  reading_ = false;
  token_ = std::move(token);
  if (readable_ && token_.empty()) {
    LogWarning(absl::StrCat(
        "--metrics_token_file: ", security_.token_file,
        " is missing, empty or longer than 4096 bytes: no token lets anybody see /metrics; write "
        "one there, it is read for each request"));
  }
  readable_ = !token_.empty();
  return token_;
}

}  // namespace shoal
