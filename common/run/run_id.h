#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/files/file_system.h"

namespace shoal {

// 32 hexadecimal digits, drawn at random.
std::string DrawRunId();

// The id in the file at `path`, RUN_DIR/.run-id: 32 hexadecimal digits and a newline. Where there
// is none, or what is there is no id, draws one and writes it. Errors are those of the file system.
absl::StatusOr<std::string> ReadOrMakeRunId(const std::string& path, FileSystem* files);

}  // namespace shoal
