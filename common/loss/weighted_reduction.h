#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/json/json_errors.h"

namespace shoal {

// Where examples or classes have weights: that `loss`, a Keras config at `path`, is not reduced by
// the one of Keras's means that is another then.
void CheckWeightedReduction(const nlohmann::json& loss, const std::string& path,
                            JsonErrors* errors);

}  // namespace shoal
