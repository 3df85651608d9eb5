#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/data_source.h"

namespace shoal {

// Returns a data source for the data at `path`. Guesses the format from name and content.
// kInvalidArgument: the file has no known format.
absl::StatusOr<DataSource> GuessDataSource(const std::string& path);

// Returns an error if nothing exists at `path`. Accepts patterns, which other code expands.
absl::Status CheckExists(const std::string& path);

}  // namespace shoal
