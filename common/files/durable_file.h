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

// The permissions of a new directory. Files in it get them, too (NewFileMode).
enum class DirectoryAccess {
  kAsParent,  // those of the directory that it is in
  kOutput,    // 0755 less the umask, as any program's output
};

// Makes a new empty directory at `path`, or with "-2", "-3", ... appended if the path exists.
// Returns its path. Requires an existing parent.
absl::StatusOr<std::string> MakeNewDirectory(const std::string& path,
                                             FileSystem* files = RealFileSystem(),
                                             DirectoryAccess access = DirectoryAccess::kAsParent);

// Makes `directory` (an absolute path) and its missing parents, and syncs their entries.
absl::Status MakeDirectories(const std::string& directory, FileSystem* files = RealFileSystem(),
                             DirectoryAccess access = DirectoryAccess::kAsParent);

// Makes the directory of a run (an absolute path) with mode 0700, and its missing parents as
// kOutput, and syncs their entries. A directory that exists keeps its permissions, and all files of
// the run get these.
absl::Status MakeRunDirectory(const std::string& directory, FileSystem* files = RealFileSystem());

// Returns `path` as an absolute path without ".", ".." and a trailing slash. Does not follow links.
std::string AbsolutePath(const std::string& path);

// Returns the directory that `path` lies in.
std::string ParentDirectory(const std::string& path);

}  // namespace shoal
