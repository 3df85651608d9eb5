#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/job/job_reader.h"
#include "common/json/json_object.h"

namespace shoal {

// Reads the path `value` at `key` of `object` and returns it absolute and normalized. A relative
// path starts from the folder in `options`; if that is empty, the path must be absolute. Returns ""
// and adds an error if it is not a path.
std::string ReadJobPath(JsonObject& object, const char* key, const nlohmann::json& value,
                        const JobReadOptions& options);

}  // namespace shoal
