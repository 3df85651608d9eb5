#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shoal {

// An open file, or a directory opened to be synced. Closes itself; movable. All methods may be
// called by several threads as far as the system calls allow. Every error names the path and the
// system's reason.
class OpenFile {
 public:
  enum class Mode {
    kRead,
    kWrite,   // an existing file
    kCreate,  // a new file, which must not exist
  };
  static absl::StatusOr<OpenFile> Open(const std::string& path, Mode mode);
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&& other) noexcept;
  ~OpenFile();

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

  // Size of the file; an error when it is not a regular file.
  absl::StatusOr<uint64_t> Size() const;
  // Reads exactly `size` bytes at `offset`; kDataLoss when the file ends before.
  absl::Status ReadAt(uint64_t offset, void* out, uint64_t size) const;
  // Calls `sink` with consecutive pieces of the `size` bytes at `offset`, until it returns an
  // error.
  absl::Status ReadPieces(uint64_t offset, uint64_t size,
                          const std::function<absl::Status(const char*, size_t)>& sink) const;
  absl::Status WriteAt(uint64_t offset, const void* data, uint64_t size) const;
  // Gives the file this size and its room on disk, so that a full disk shows now.
  absl::Status Allocate(uint64_t size) const;
  // Returns when what was written is on disk.
  absl::Status Sync() const;

 private:
  OpenFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_ = -1;
  std::string path_;
};

// "cannot VERB PATH: No space left on device", from `error_number` (an errno).
absl::Status FileError(int error_number, const char* verb, const std::string& path);

// The whole file; kDataLoss when it is larger than `limit_bytes`.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t limit_bytes);

// Writes a new file and syncs it.
absl::Status WriteNewFile(const std::string& path, const std::string& content);

// Puts `content` in the place of `path`, whole: written beside, synced, renamed. One writer at a
// time.
absl::Status ReplaceFile(const std::string& path, const std::string& content);

// Makes entries that were created, renamed or removed in a directory last.
absl::Status SyncDirectory(const std::string& directory);

// Makes an empty directory that no one else has: `path`, or with "-2", "-3", ... appended when it
// is taken. Returns its path. The parent must exist.
absl::StatusOr<std::string> MakeNewDirectory(const std::string& path);

// Makes `directory` (an absolute path) and the parents it lacks, and syncs their entries.
absl::Status MakeDirectories(const std::string& directory);

// `path` from the root, without "." and ".." and a slash at the end; links are not followed.
std::string AbsolutePath(const std::string& path);

}  // namespace shoal
