#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace shoal {

// Returns the index in `endings` (such as ".npy") of the ending of the --output file, ignoring
// case. The ending selects the format. kInvalidArgument: another ending.
absl::StatusOr<size_t> EndingOf(const std::string& output, std::span<const std::string> endings);

}  // namespace shoal
