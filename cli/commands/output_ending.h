#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace shoal {

// Which of `endings` (".npy") the file has that --output names, in whatever case: the ending says
// how it is written. kInvalidArgument for another.
absl::StatusOr<size_t> EndingOf(const std::string& output, std::span<const std::string> endings);

}  // namespace shoal
