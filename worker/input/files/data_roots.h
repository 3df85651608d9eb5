#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/input/files/file_descriptor.h"

namespace shoal {

// The directories below which a worker may read data, DataSource::roots: real paths. Without any,
// it may read every file. A job names its files, and a worker does not know who answers at the
// coordinator's address. All functions are thread-safe.

// Resolves the links of `directories`. Returns kInvalidArgument, naming the path, for one that is
// no directory.
absl::StatusOr<std::vector<std::string>> ResolveDataRoots(
    const std::vector<std::string>& directories);

// Opens `path` for reading, without waiting for a pipe's writer. With roots, the file must lie
// below one of them, after links are resolved. Otherwise returns kFailedPrecondition, with the
// path, the roots and what to do, and opens nothing. The error is the same for a file that does not
// exist. Errors of the system are those of PathError().
absl::StatusOr<FileDescriptor> OpenBelowRoots(const std::string& path,
                                              const std::vector<std::string>& roots);

// Returns the error for a path that is not below the roots.
absl::Status OutsideOfRoots(const std::string& path, const std::vector<std::string>& roots);

// Returns the error of OpenBelowRoots() for a file or directory that other code opens. OK if there
// are no roots.
absl::Status CheckBelowRoots(const std::string& path, const std::vector<std::string>& roots);

}  // namespace shoal
