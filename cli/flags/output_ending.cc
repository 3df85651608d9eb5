#include "cli/flags/output_ending.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shoal {

absl::StatusOr<size_t> EndingOf(const std::string& output, std::span<const std::string> endings) {
  for (size_t i = 0; i < endings.size(); ++i) {
    if (absl::EndsWithIgnoreCase(output, endings[i])) return i;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--output ", output, ": must end in ", absl::StrJoin(endings, " or ")));
}

}  // namespace shoal
