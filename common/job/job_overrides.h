#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/json/json_errors.h"

namespace shoal {

// Where it puts its value: "$.data.test.path".
std::string PathOfOverride(const JobOverride& given);

// Puts `overrides` into the JSON of a job file, as if they stood there. What lies on the way and is
// absent is made; an optimizer, a loss or a strategy that is there by its name alone is spelt out.
// Epochs replace steps and steps epochs. What is wrong with a path is added to `errors`, where all
// that is wrong with what was put there will be named by its flag. Returns a line for each
// override: "--epochs: $.epochs is 3; 5 in the file", also where that changes nothing.
std::vector<std::string> ApplyJobOverrides(const std::vector<JobOverride>& overrides,
                                           nlohmann::json* root, JsonErrors* errors);

}  // namespace shoal
