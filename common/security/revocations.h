#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/security/certificate.h"

namespace shoal {

// Certificates that are valid but must not be accepted any more: the file `revoked` of a TLS
// directory. An entry a line; spaces around it do not matter:
//
//   # a comment, also after an entry
//   4f2a09c1                           the serial of a certificate, in hex, as `shoal cert show`
//   4F:2A:09:C1                        prints it, or with a colon after every second digit
//   spiffe://shoal/job/mnist/worker/3  all certificates with this identity
//
// Any thread may read it while none changes it.
class Revocations {
 public:
  // Revokes nothing.
  Revocations() = default;

  // Returns kFailedPrecondition for a line that is neither, with `path` and the number of the line:
  // a mistyped entry must not let anyone in.
  static absl::StatusOr<Revocations> Parse(std::string_view text, const std::string& path);

  // Revokes also what `others` revoke.
  void Add(const Revocations& others);

  // Returns kPermissionDenied if the certificate is revoked; the message names the entry.
  absl::Status Check(const Certificate& certificate) const;

  bool operator==(const Revocations&) const = default;

  size_t size() const { return serials_.size() + identities_.size(); }

 private:
  std::set<std::string> serials_;  // as Certificate::serial
  std::set<std::string> identities_;
};

}  // namespace shoal
