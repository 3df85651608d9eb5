#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/job/job.h"
#include "common/json/json_errors.h"

namespace shoal {

// Reads an optimizer that stands at `path`; what is wrong is added to `errors`.
Job::Optimizer ReadOptimizer(const nlohmann::json& value, const std::string& path,
                             JsonErrors* errors);

// The optimizer as a Keras config with every option of its class: what ReadOptimizer() reads back.
nlohmann::json OptimizerToJson(const Job::Optimizer& optimizer);

}  // namespace shoal
