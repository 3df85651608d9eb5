#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/job/job.h"
#include "common/json/json_errors.h"

namespace shoal {

// Reads a loss that stands at `path`; what is wrong is added to `errors`.
Job::Loss ReadLoss(const nlohmann::json& value, const std::string& path, JsonErrors* errors);

// The loss as a Keras config with every option of its class: what ReadLoss() reads back.
nlohmann::json LossToJson(const Job::Loss& loss);

}  // namespace shoal
