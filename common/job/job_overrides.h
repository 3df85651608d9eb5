#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/json/json_errors.h"

namespace shoal {

// Returns the JSON path at which `given` puts its value: "$.data.test.path".
std::string PathOfOverride(const JobOverride& given);

// Puts `overrides` into the JSON of a job file, as if the file contained them. Creates missing
// objects on a path. Turns an optimizer, loss or strategy that is only a name into an object.
// Epochs replace steps, and steps replace epochs. Adds errors about paths to `errors`. Later errors
// about an override's value name its flag. Returns a line for each override, even if it changes
// nothing: "--epochs: $.epochs is 3; 5 in the file".
std::vector<std::string> ApplyJobOverrides(const std::vector<JobOverride>& overrides,
                                           nlohmann::json* root, JsonErrors* errors);

}  // namespace shoal
