#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/job/job_reader.h"
#include "common/json/json_object.h"

namespace shoal {

// Absolute and normal form of the path `value`, which stands at `key` of `object`, starting from
// where `options` say; where that is empty the path must be absolute itself. Empty: it is none, and
// an error was added.
std::string ReadJobPath(JsonObject& object, const char* key, const nlohmann::json& value,
                        const JobReadOptions& options);

}  // namespace shoal
