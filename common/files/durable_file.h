#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_system.h"  // IWYU pragma: export

namespace shoal {

// Returns the whole file, or kDataLoss if it is larger than `limit_bytes`. Reads it again if
// another process shortens it meanwhile.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t limit_bytes,
                                          FileSystem* files = RealFileSystem());

// Writes a new file and syncs it.
absl::Status WriteNewFile(const std::string& path, const std::string& content,
                          FileSystem* files = RealFileSystem());

// Replaces the file at `path` with `content`, completely or not at all. Writes "PATH.tmp", syncs it
// and renames it. One writer at a time.
absl::Status ReplaceFile(const std::string& path, const std::string& content,
                         FileSystem* files = RealFileSystem());

// Makes a new empty directory at `path`, or with "-2", "-3", ... appended if the path exists.
// Returns its path. Requires an existing parent.
absl::StatusOr<std::string> MakeNewDirectory(const std::string& path,
                                             FileSystem* files = RealFileSystem());

// Makes `directory` (an absolute path) and its missing parents, and syncs their entries.
absl::Status MakeDirectories(const std::string& directory, FileSystem* files = RealFileSystem());

// Returns `path` as an absolute path without ".", ".." and a trailing slash. Does not follow links.
std::string AbsolutePath(const std::string& path);

// Returns the directory that `path` lies in.
std::string ParentDirectory(const std::string& path);

}  // namespace shoal
