#include "common/security/revocations.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/text/printable.h"

namespace shoal {
namespace {

// A serial has at most 20 bytes (RFC 5280).
constexpr size_t kMaxSerialDigits = 40;

// Returns the entry in the form of Certificate::serial, or nullopt if it is no serial.
std::optional<std::string> ParseSerial(const std::string& entry) {
  std::string digits = entry;
  if (entry.find(':') != std::string::npos) {
    digits.clear();
    for (const std::string& pair : std::vector<std::string>(absl::StrSplit(entry, ':'))) {
      if (pair.size() != 2) return std::nullopt;
      digits += pair;
    }
  }
  if (digits.empty() || digits.size() > kMaxSerialDigits ||
      !std::all_of(digits.begin(), digits.end(),
                   [](unsigned char c) { return absl::ascii_isxdigit(c); })) {
    return std::nullopt;
  }
  const size_t first = digits.find_first_not_of('0');
  return first == std::string::npos ? "0" : absl::AsciiStrToLower(digits.substr(first));
}

}  // namespace

absl::StatusOr<Revocations> Revocations::Parse(std::string_view text, const std::string& path) {
  Revocations revocations;
  size_t number = 0;
  for (std::string line : std::vector<std::string>(absl::StrSplit(std::string(text), '\n'))) {
    ++number;
    line = line.substr(0, line.find('#'));
    absl::StripAsciiWhitespace(&line);
    if (line.empty()) continue;
    if (std::optional<std::string> serial = ParseSerial(line)) {
      revocations.serials_.insert(*std::move(serial));
      continue;
    }
    const absl::StatusOr<Identity> identity = ParseIdentity(line);
    if (!identity.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          path, ":", number, ": \"", Printable(line, kMaxNameBytes),
          "\" revokes nothing; it must be the serial of a certificate in hex, as `shoal cert show` "
          "prints it, or a whole identity (spiffe://...)"));
    }
    revocations.identities_.insert(identity->ToUri());
  }
  return revocations;
}

void Revocations::Add(const Revocations& others) {
  serials_.insert(others.serials_.begin(), others.serials_.end());
  identities_.insert(others.identities_.begin(), others.identities_.end());
}

absl::Status Revocations::Check(const Certificate& certificate) const {
  const std::string uri = certificate.identity.ToUri();
  const bool by_identity = identities_.contains(uri);
  if (!by_identity && !serials_.contains(certificate.serial)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "the certificate of ", uri, " with the serial ", certificate.serial, " is revoked by its ",
      by_identity ? "identity, and a new one of this identity would be, too; ask whoever runs the "
                    "cluster to take it out of `revoked`"
                  : "serial; ask whoever runs the cluster for a new one"));
}

}  // namespace shoal
