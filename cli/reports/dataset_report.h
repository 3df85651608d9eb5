#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/job/data_source.h"

namespace shoal {

// What is at `path`, as a data source says it: its format told by name and content.
// kInvalidArgument for a file of no format.
absl::StatusOr<DataSource> GuessDataSource(const std::string& path);

// An error where nothing is at `path`. A pattern is left to whoever expands it.
absl::Status CheckIsThere(const std::string& path);

// The lines of `shoal dataset inspect`: what is there, then what is damaged. `*damaged` counts it.
absl::StatusOr<std::string> InspectData(const DataSource& source, uint64_t* damaged);

}  // namespace shoal
