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

// An open file; destroying it closes it. Several threads may call all methods, as far as the system
// calls allow. Every error names the path and the system's reason.
class File {
 public:
  virtual ~File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }

  // Returns an error if it is not a regular file.
  virtual absl::StatusOr<uint64_t> Size() const = 0;
  // Reads exactly `size` bytes at `offset`; kDataLoss if the file ends before.
  virtual absl::Status ReadAt(uint64_t offset, void* out, uint64_t size) const = 0;
  virtual absl::Status WriteAt(uint64_t offset, const void* data, uint64_t size) const = 0;
  // Sets the file's size and reserves its room on disk. Otherwise a full disk would show only
  // later.
  virtual absl::Status Allocate(uint64_t size) const = 0;
  // Returns when all written data is on disk. The entry in the directory needs its own
  // FileSystem::SyncDirectory().
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

// The file operations that Shoal needs, with POSIX's meaning. Implemented by the machine's file
// system and by fakes for tests. Every error names the path and the system's reason; codes are
// those of absl::ErrnoToStatus (kNotFound, kAlreadyExists, kResourceExhausted for a full disk).
class FileSystem {
 public:
  enum class Mode {
    kRead,
    kWrite,   // an existing file; kFailedPrecondition if `path` is a symbolic link
    kCreate,  // a new file, which must not exist; its permissions are NewFileMode()
  };
  struct Entry {
    std::string name;
    bool is_directory = false;
  };
  virtual ~FileSystem() = default;

  virtual absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) = 0;
  virtual bool Exists(const std::string& path) = 0;
  virtual bool IsDirectory(const std::string& path) = 0;
  // Returns whether `path` itself is a symbolic link, also a dangling one. Reading follows links;
  // deleting and overwriting do not. A file system without links need not override this.
  virtual bool IsLink(const std::string&) { return false; }
  // Returns the time since a file was written, by the file's time and the clock of this machine. At
  // least 0, and 0 if it is not known.
  virtual std::chrono::nanoseconds Age(const std::string& path) = 0;
  // Returns the entries of a directory, in any order.
  virtual absl::StatusOr<std::vector<Entry>> List(const std::string& directory) = 0;
  // Makes a directory with the permissions of the one that it is in: mode 0700, and reading by
  // group and others where that lets them. The umask applies.
  virtual absl::Status MakeDirectory(const std::string& path) = 0;
  // The same with the permissions `mode`, less the umask. A file system without permissions need
  // not override this.
  virtual absl::Status MakeDirectoryWithMode(const std::string& path, uint32_t) {
    return MakeDirectory(path);
  }
  // Replaces a file or an empty directory at `to`.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Exchanges two existing paths atomically. Not every file system can do this.
  virtual absl::Status Exchange(const std::string& a, const std::string& b) = 0;
  virtual absl::Status RemoveFile(const std::string& path) = 0;
  // Removes a directory with everything in it; OK if it is missing. Removes links, never their
  // targets.
  virtual absl::Status RemoveTree(const std::string& directory) = 0;
  // Makes created, renamed and removed entries of a directory durable. Also OK if the file system
  // does not sync directories (SyncsDirectories).
  virtual absl::Status SyncDirectory(const std::string& directory) = 0;
  // Returns false if the file system cannot sync `directory`. Some network and FUSE file systems
  // cannot; they decide by themselves when entries are durable.
  virtual bool SyncsDirectories(const std::string&) { return true; }
};

// Returns the machine's file system. Stateless, thread-safe; lives as long as the process.
FileSystem* RealFileSystem();

// Returns the permissions of a new file at `path`: mode 0600, and reading by group and others where
// the permissions of its directory let them. The directory 0700 gives 0600, 0750 gives 0640, 0755
// gives 0644. 0600 if the directory cannot be looked at.
uint32_t NewFileMode(const std::string& path);

// Returns kFailedPrecondition: `path` is a symbolic link, so it is not written or removed.
absl::Status LinkError(const std::string& path);

// "cannot VERB PATH: No space left on device", from `error_number` (an errno).
absl::Status FileError(int error_number, const std::string& verb, const std::string& path);

}  // namespace shoal
