#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/job/data_source.h"

namespace shoal {

// Returns the lines of `shoal dataset inspect`: a summary, then the damage. Counts the damage in
// `*damaged`.
absl::StatusOr<std::string> InspectData(const DataSource& source, uint64_t* damaged);

}  // namespace shoal
