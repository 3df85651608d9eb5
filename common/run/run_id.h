#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/files/file_system.h"

namespace shoal {

// Returns 32 random hexadecimal digits.
std::string DrawRunId();

// Returns the id in the file at `path`, RUN_DIR/.run-id: 32 hexadecimal digits and a newline. If
// the file is missing or invalid, draws an id and writes it. Errors are those of the file system.
absl::StatusOr<std::string> ReadOrMakeRunId(const std::string& path, FileSystem* files);

}  // namespace shoal
