#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/backend.h"

namespace shoal {

// The names of those that there are, the usual one first.
std::vector<std::string> BackendNames();

// Another name is kInvalidArgument, with the nearest one.
absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(const std::string& name);

}  // namespace shoal
