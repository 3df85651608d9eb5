#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"

namespace shoal {

// What people give in place of a job file, and what they are to give instead: kInvalidArgument
// whose message begins with `path`. OK where it is none of these, and where it cannot be read.

// A folder, a run directory, a Keras model in an archive or HDF5, or any other binary file.
absl::Status CheckTakenForJobFile(const std::string& path);

// A Keras model as JSON: `root` is what was read at `path`.
absl::Status CheckTakenForJob(const std::string& path, const nlohmann::json& root);

}  // namespace shoal
