#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/json/json_errors.h"

namespace shoal {

// Rejects a reduction that differs from Shoal's if examples or classes have weights. `loss` is a
// Keras config at `path`.
void CheckWeightedReduction(const nlohmann::json& loss, const std::string& path,
                            JsonErrors* errors);

}  // namespace shoal
