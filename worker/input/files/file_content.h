#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/input/files/file_descriptor.h"
#include "worker/input/files/reading_memory.h"

namespace shoal {

// What `error`, an errno of the file or folder `path`, is: a missing one kNotFound, links that lead
// in a circle kInvalidArgument.
absl::Status PathError(int error, const std::string& path);

// Opens a regular file for reading and says its size. A missing one is kNotFound; what is no
// regular file is kInvalidArgument, which ends with `expected` ("expected an IDX or NPY file").
absl::StatusOr<FileDescriptor> OpenRegularFile(const std::string& path, const char* expected,
                                               uint64_t* size);

// Reads exactly `size` bytes at `offset`; kDataLoss, naming the file and the byte, where it ends
// before.
absl::Status ReadAt(const FileDescriptor& file, const std::string& path, uint64_t offset, void* out,
                    uint64_t size);

// The whole of a file, into `out`, which says how large it may be.
absl::Status ReadWholeFile(const std::string& path, EncodedBytes* out);

// The files that the paths name, in this order, those of a pattern sorted. An error for a path, or
// pattern, that has none; kNotFound, if nothing else is wrong.
absl::StatusOr<std::vector<std::string>> ExpandPaths(const std::vector<std::string>& paths);

}  // namespace shoal
