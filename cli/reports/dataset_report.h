#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/job/data_source.h"

namespace shoal {

// Returns a data source for the data at `path`. Guesses the format from name and content.
// kInvalidArgument: the file has no known format.
absl::StatusOr<DataSource> GuessDataSource(const std::string& path);

// Returns an error if nothing exists at `path`. Accepts patterns, which other code expands.
absl::Status CheckExists(const std::string& path);

// Returns the lines of `shoal dataset inspect`: a summary, then the damage. Counts the damage in
// `*damaged`.
absl::StatusOr<std::string> InspectData(const DataSource& source, uint64_t* damaged);

}  // namespace shoal
