#pragma once

#include <string>

#include "absl/status/status.h"

namespace shoal {

// kNotFound: nothing is at `path`; with the path that it may be a typing error of, if there is one.
absl::Status MissingPath(const std::string& path);

}  // namespace shoal
