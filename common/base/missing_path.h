#pragma once

#include <string>

#include "absl/status/status.h"

namespace shoal {

// Returns kNotFound for a missing `path`. Suggests a similar existing path, if there is one.
absl::Status MissingPath(const std::string& path);

}  // namespace shoal
