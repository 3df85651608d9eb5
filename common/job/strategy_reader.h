#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/job/job.h"
#include "common/json/json_errors.h"

namespace shoal {

// Reads $.strategy, which stands at `path`: a name, or an object with it and with what belongs to
// it. What is wrong goes to `errors`.
Job::Strategy ReadStrategy(const nlohmann::json& value, const std::string& path,
                           JsonErrors* errors);

}  // namespace shoal
