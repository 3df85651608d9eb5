#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/job/job.h"
#include "common/json/json_errors.h"

namespace shoal {

// Reads $.strategy at `path`: a name, or an object with the name and its options. Adds problems to
// `errors`.
Job::Strategy ReadStrategy(const nlohmann::json& value, const std::string& path,
                           JsonErrors* errors);

}  // namespace shoal
