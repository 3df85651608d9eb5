#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shoal {

// An open file; destroying it closes it. All methods may be called by several threads as far as the
// system calls allow. Every error names the path and the system's reason.
class File {
 public:
  virtual ~File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }

  // An error when it is not a regular file.
  virtual absl::StatusOr<uint64_t> Size() const = 0;
  // Reads exactly `size` bytes at `offset`; kDataLoss when the file ends before.
  virtual absl::Status ReadAt(uint64_t offset, void* out, uint64_t size) const = 0;
  virtual absl::Status WriteAt(uint64_t offset, const void* data, uint64_t size) const = 0;
  // Gives the file this size and its room on disk, so that a full disk shows now.
  virtual absl::Status Allocate(uint64_t size) const = 0;
  // Returns when what was written is on disk. That the file is in its directory is another matter:
  // FileSystem::SyncDirectory.
  virtual absl::Status Sync() const = 0;

  // Calls `sink` with consecutive pieces of the `size` bytes at `offset`, until it returns an
  // error.
  absl::Status ReadPieces(uint64_t offset, uint64_t size,
                          const std::function<absl::Status(const char*, size_t)>& sink) const;

 protected:
  explicit File(std::string path) : path_(std::move(path)) {}

 private:
  const std::string path_;
};

// What Shoal needs of a file system, with POSIX's meaning: the machine's, or one that a test
// breaks. Every error names the path and the system's reason; codes are those of
// absl::ErrnoToStatus (kNotFound, kAlreadyExists, kResourceExhausted for a full disk).
class FileSystem {
 public:
  enum class Mode {
    kRead,
    kWrite,   // an existing file; kFailedPrecondition where `path` is a symbolic link
    kCreate,  // a new file, which must not exist
  };
  struct Entry {
    std::string name;
    bool is_directory = false;
  };
  virtual ~FileSystem() = default;

  virtual absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) = 0;
  virtual bool Exists(const std::string& path) = 0;
  virtual bool IsDirectory(const std::string& path) = 0;
  // Whether `path` itself is a symbolic link, wherever that leads. Reading follows links; deleting
  // and overwriting do not. A file system without links keeps this.
  virtual bool IsLink(const std::string&) { return false; }
  // How long ago a file was written, by its own time and the clock of this machine. Not less than
  // 0, whatever the two say; 0 also where it cannot be told.
  virtual std::chrono::nanoseconds Age(const std::string& path) = 0;
  // What a directory holds, in any order.
  virtual absl::StatusOr<std::vector<Entry>> List(const std::string& directory) = 0;
  virtual absl::Status MakeDirectory(const std::string& path) = 0;
  // A file, or an empty directory, at `to` is replaced.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Both exist and change places at once; not every file system can do this.
  virtual absl::Status Exchange(const std::string& a, const std::string& b) = 0;
  virtual absl::Status RemoveFile(const std::string& path) = 0;
  // With everything in it; OK when there is none. Of a link the link goes, never what it leads to.
  virtual absl::Status RemoveTree(const std::string& directory) = 0;
  // Makes entries that were created, renamed or removed in a directory last. OK, too, where the
  // file system does not sync directories (SyncsDirectories).
  virtual absl::Status SyncDirectory(const std::string& directory) = 0;
  // False where the file system cannot sync `directory`, as some of networks and of FUSE do:
  // what it holds lasts when that file system sees to it.
  virtual bool SyncsDirectories(const std::string&) { return true; }
};

// The machine's. Stateless, thread-safe; lives as long as the process.
FileSystem* RealFileSystem();

// kFailedPrecondition: `path` is a symbolic link where something is to be written or removed.
absl::Status LinkError(const std::string& path);

// "cannot VERB PATH: No space left on device", from `error_number` (an errno).
absl::Status FileError(int error_number, const std::string& verb, const std::string& path);

}  // namespace shoal
