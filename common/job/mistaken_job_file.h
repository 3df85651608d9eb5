#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"

namespace shoal {

// Detects files that users give by mistake instead of a job file. Returns kInvalidArgument, with
// `path` first and advice on what to give. Returns OK for anything else, and if it cannot be read.

// Detects a folder, a run directory, a Keras model in an archive or HDF5, or any other binary file.
absl::Status CheckMistakenFile(const std::string& path);

// The same for a Keras model as JSON. `root` is the content of `path`.
absl::Status CheckMistakenModel(const std::string& path, const nlohmann::json& root);

}  // namespace shoal
