#include "common/files/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

// Returns the permissions of the directory that `path` lies in; 0 if there is none.
mode_t DirectoryMode(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  struct stat info;
  return stat(parent.empty() ? "." : parent.c_str(), &info) == 0 ? info.st_mode : 0;
}

class RealFile : public File {
 public:
  RealFile(int descriptor, std::string path) : File(std::move(path)), descriptor_(descriptor) {}
  ~RealFile() override { close(descriptor_); }

  absl::StatusOr<uint64_t> Size() const override {
    struct stat info;
    if (fstat(descriptor_, &info) != 0) return FileError(errno, "stat", path());
    if (!S_ISREG(info.st_mode)) {
      return absl::FailedPreconditionError(absl::StrCat(path(), " is not a regular file"));
    }
    return static_cast<uint64_t>(info.st_size);
  }

  absl::Status ReadAt(uint64_t offset, void* out, uint64_t size) const override {
    char* to = static_cast<char*>(out);
    while (size > 0) {
      const ssize_t got =
          pread(descriptor_, to, std::min(size, kPieceBytes), static_cast<off_t>(offset));
      if (got < 0) {
        if (errno == EINTR) continue;
        return FileError(errno, "read", path());
      }
      if (got == 0) {
        return absl::DataLossError(
            absl::StrCat(path(), " ends at byte ", offset, ", where ", size, " more are expected"));
      }
      to += got;
      offset += static_cast<uint64_t>(got);
      size -= static_cast<uint64_t>(got);
    }
    return absl::OkStatus();
  }

  absl::Status WriteAt(uint64_t offset, const void* data, uint64_t size) const override {
    const char* from = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t put = pwrite(descriptor_, from, size, static_cast<off_t>(offset));
      if (put < 0) {
        if (errno == EINTR) continue;
        return FileError(errno, "write", path());
      }
      from += put;
      offset += static_cast<uint64_t>(put);
      size -= static_cast<uint64_t>(put);
    }
    return absl::OkStatus();
  }

  absl::Status Allocate(uint64_t size) const override {
    if (size > 0) {
      int failed;
      do {
        failed = fallocate(descriptor_, 0, 0, static_cast<off_t>(size)) == 0 ? 0 : errno;
      } while (failed == EINTR);
      // If the file system cannot reserve room, a full disk shows when the data is written.
      if (failed != 0 && failed != EOPNOTSUPP && failed != ENOSYS) {
        return FileError(failed, absl::StrCat("reserve ", size, " bytes for"), path());
      }
    }
    if (ftruncate(descriptor_, static_cast<off_t>(size)) != 0) {
      return FileError(errno, "resize", path());
    }
    return absl::OkStatus();
  }

  absl::Status Sync() const override {
    if (fsync(descriptor_) != 0) return FileError(errno, "sync", path());
    return absl::OkStatus();
  }

 private:
  const int descriptor_;
};

class RealFiles : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    int flags = O_CLOEXEC;
    const char* verb = "open";
    switch (mode) {
      case Mode::kRead:
        // Non-blocking: otherwise a named pipe in place of a file would hang its reader.
        flags |= O_RDONLY | O_NONBLOCK;
        break;
      case Mode::kWrite:
        flags |= O_WRONLY | O_NOFOLLOW;
        verb = "open for writing";
        break;
      case Mode::kCreate:
        flags |= O_WRONLY | O_CREAT | O_EXCL;
        verb = "create";
        break;
    }
    const mode_t permissions = mode == Mode::kCreate ? NewFileMode(path) : 0;
    const int descriptor = open(path.c_str(), flags, permissions);
    if (descriptor < 0) {
      const int error = errno;
      if (error == ELOOP && mode == Mode::kWrite && IsLink(path)) return LinkError(path);
      return FileError(error, verb, path);
    }
    return std::make_unique<RealFile>(descriptor, path);
  }

  bool Exists(const std::string& path) override {
    std::error_code ignored;
    return fs::exists(path, ignored);
  }

  bool IsDirectory(const std::string& path) override {
    std::error_code ignored;
    return fs::is_directory(path, ignored);
  }

  bool IsLink(const std::string& path) override {
    std::error_code ignored;
    return fs::is_symlink(fs::symlink_status(path, ignored));
  }

  std::chrono::nanoseconds Age(const std::string& path) override {
    std::error_code failed;
    const fs::file_time_type written = fs::last_write_time(path, failed);
    if (failed) return {};
    const std::chrono::nanoseconds age = fs::file_time_type::clock::now() - written;
    return std::max(age, std::chrono::nanoseconds(0));
  }

  absl::StatusOr<std::vector<Entry>> List(const std::string& directory) override {
    std::vector<Entry> entries;
    std::error_code failed;
    fs::directory_iterator entry(directory, failed);
    while (!failed && entry != fs::directory_iterator()) {
      std::error_code ignored;
      entries.push_back({entry->path().filename().string(), entry->is_directory(ignored)});
      entry.increment(failed);
    }
    if (failed) return FileError(failed.value(), "list", directory);
    return entries;
  }

  absl::Status MakeDirectory(const std::string& path) override {
    constexpr mode_t kReading = S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH;
    return MakeDirectoryWithMode(path, S_IRWXU | (DirectoryMode(path) & kReading));
  }

  absl::Status MakeDirectoryWithMode(const std::string& path, uint32_t mode) override {
    if (mkdir(path.c_str(), mode) == 0) return absl::OkStatus();
    return FileError(errno, "create directory", path);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return FileError(errno, absl::StrCat("rename ", from, " to"), to);
  }

  absl::Status Exchange(const std::string& a, const std::string& b) override {
    if (renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) {
      return absl::OkStatus();
    }
    return FileError(errno, absl::StrCat("exchange ", a, " and"), b);
  }

  absl::Status RemoveFile(const std::string& path) override {
    if (unlink(path.c_str()) == 0) return absl::OkStatus();
    return FileError(errno, "remove", path);
  }

  absl::Status RemoveTree(const std::string& directory) override {
    std::error_code failed;
    fs::remove_all(directory, failed);
    if (failed) return FileError(failed.value(), "remove", directory);
    return absl::OkStatus();
  }

  absl::Status SyncDirectory(const std::string& directory) override {
    bool unsupported = false;
    return SyncDirectory(directory, &unsupported);
  }

  bool SyncsDirectories(const std::string& directory) override {
    bool unsupported = false;
    (void)SyncDirectory(directory, &unsupported);
    return !unsupported;
  }

 private:
  static absl::Status SyncDirectory(const std::string& directory, bool* unsupported) {
    const int descriptor = open(directory.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) return FileError(errno, "open", directory);
    const int error = fsync(descriptor) == 0 ? 0 : errno;
    close(descriptor);
    *unsupported = error == EINVAL || error == ENOTSUP || error == ENOSYS;
    if (error == 0 || *unsupported) return absl::OkStatus();
    return FileError(error, "sync", directory);
  }
};

}  // namespace

absl::Status File::ReadPieces(uint64_t offset, uint64_t size,
                              const std::function<absl::Status(const char*, size_t)>& sink) const {
  std::vector<char> piece(std::min(size, kPieceBytes));
  while (size > 0) {
    const uint64_t now = std::min<uint64_t>(size, piece.size());
    SHOAL_RETURN_IF_ERROR(ReadAt(offset, piece.data(), now));
    SHOAL_RETURN_IF_ERROR(sink(piece.data(), now));
    offset += now;
    size -= now;
  }
  return absl::OkStatus();
}

FileSystem* RealFileSystem() {
  static RealFiles files;
  return &files;
}

uint32_t NewFileMode(const std::string& path) {
  return S_IRUSR | S_IWUSR | (DirectoryMode(path) & (S_IRGRP | S_IROTH));
}

absl::Status LinkError(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(
      path,
      " is a symbolic link, and Shoal never writes or removes through one; remove the link, "
      "or replace it with its target"));
}

absl::Status FileError(int error_number, const std::string& verb, const std::string& path) {
  return absl::ErrnoToStatus(error_number, absl::StrCat("cannot ", verb, " ", path));
}

}  // namespace shoal
