#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_system.h"  // IWYU pragma: export

namespace shoal {

// The whole file; kDataLoss when it is larger than `limit_bytes`. One that another process shortens
// meanwhile is read again.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t limit_bytes,
                                          FileSystem* files = RealFileSystem());

// Writes a new file and syncs it.
absl::Status WriteNewFile(const std::string& path, const std::string& content,
                          FileSystem* files = RealFileSystem());

// Puts `content` in the place of `path`, whole: written beside, synced, renamed. One writer at a
// time.
absl::Status ReplaceFile(const std::string& path, const std::string& content,
                         FileSystem* files = RealFileSystem());

// Makes an empty directory that no one else has: `path`, or with "-2", "-3", ... appended when it
// is taken. Returns its path. The parent must exist.
absl::StatusOr<std::string> MakeNewDirectory(const std::string& path,
                                             FileSystem* files = RealFileSystem());

// Makes `directory` (an absolute path) and the parents it lacks, and syncs their entries.
absl::Status MakeDirectories(const std::string& directory, FileSystem* files = RealFileSystem());

// `path` from the root, without "." and ".." and a slash at the end; links are not followed.
std::string AbsolutePath(const std::string& path);

}  // namespace shoal
