#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/data_source.h"
#include "worker/input/files/file_descriptor.h"
#include "worker/input/files/reading_memory.h"

namespace shoal {

// Converts `error`, an errno for the file or folder `path`: a missing one is kNotFound, a cycle of
// links is kInvalidArgument.
absl::Status PathError(int error, const std::string& path);

// Opens a regular file for reading and sets `size`. `roots` are those of the DataSource; for a file
// outside of them, returns the error of OpenBelowRoots(). Returns kNotFound if it is missing.
// Returns kInvalidArgument, ending with `expected` ("expected an IDX or NPY file"), if it is not a
// regular file.
absl::StatusOr<FileDescriptor> OpenRegularFile(const std::string& path,
                                               const std::vector<std::string>& roots,
                                               const char* expected, uint64_t* size);

// Reads exactly `size` bytes at `offset`. Returns kDataLoss, with the file and the byte, if the
// file ends earlier.
absl::Status ReadAt(const FileDescriptor& file, const std::string& path, uint64_t offset, void* out,
                    uint64_t size);

// Reads a whole file into `out`, which limits its size. `roots` as for OpenRegularFile().
absl::Status ReadWholeFile(const std::string& path, const std::vector<std::string>& roots,
                           EncodedBytes* out);

// Returns the files that match the paths of `source`, in this order; those of a pattern are sorted.
// Returns an error if a path or pattern matches none. It is kNotFound if there is no other problem.
// For a path, or a match of a pattern, outside of the source's roots, returns the error of
// OpenBelowRoots().
absl::StatusOr<std::vector<std::string>> ExpandPaths(const DataSource& source);

}  // namespace shoal
