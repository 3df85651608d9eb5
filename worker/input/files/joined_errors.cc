#include "worker/input/files/joined_errors.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace shoal {

absl::Status JoinErrors(const absl::Status& first, const absl::Status& second) {
  if (first.ok()) return second;
  if (second.ok()) return first;
  return absl::Status(
      absl::IsNotFound(first) ? second.code() : first.code(),
      absl::StrCat(std::string(first.message()), "\n", std::string(second.message())));
}

}  // namespace shoal
