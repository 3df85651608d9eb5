#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/input/files/file_descriptor.h"
#include "worker/input/files/reading_memory.h"

namespace shoal {

// Converts `error`, an errno for the file or folder `path`: a missing one is kNotFound, a cycle of
// links is kInvalidArgument.
absl::Status PathError(int error, const std::string& path);

// Opens a regular file for reading and sets `size`. Returns kNotFound if it is missing. Returns
// kInvalidArgument, ending with `expected` ("expected an IDX or NPY file"), if it is not a regular
// file.
absl::StatusOr<FileDescriptor> OpenRegularFile(const std::string& path, const char* expected,
                                               uint64_t* size);

// Reads exactly `size` bytes at `offset`. Returns kDataLoss, with the file and the byte, if the
// file ends earlier.
absl::Status ReadAt(const FileDescriptor& file, const std::string& path, uint64_t offset, void* out,
                    uint64_t size);

// Reads a whole file into `out`, which limits its size.
absl::Status ReadWholeFile(const std::string& path, EncodedBytes* out);

// Returns the files that match the paths, in this order; those of a pattern are sorted. Returns an
// error if a path or pattern matches none. It is kNotFound if there is no other problem.
absl::StatusOr<std::vector<std::string>> ExpandPaths(const std::vector<std::string>& paths);

}  // namespace shoal
