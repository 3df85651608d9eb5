#include "common/base/version.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace shoal {

const char kVersion[] = SHOAL_VERSION;

absl::Status CheckVersion(const std::string& theirs, const std::string& peer) {
  if (theirs == kVersion) return absl::OkStatus();
  // It came over the wire. Show no more than a version can have.
  const std::string shown = theirs.empty()
                                ? "of an unknown version"
                                : absl::StrCat("Shoal ", absl::CHexEscape(theirs.substr(0, 40)));
  return absl::FailedPreconditionError(
      absl::StrCat(peer, " is ", shown, ", but this process is Shoal ", kVersion,
                   "; install one version on all machines of the cluster"));
}

absl::Status InvalidMessageError(const std::string& peer, const std::string& type) {
  return absl::InvalidArgumentError(absl::StrCat(peer, " sent a message that is not a ", type,
                                                 "; run Shoal ", kVersion, " at both ends"));
}

}  // namespace shoal
