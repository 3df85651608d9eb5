#include "common/checkpoint/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
constexpr int kDirectoryAttempts = 10000;

}  // namespace

absl::Status FileError(int error_number, const char* verb, const std::string& path) {
  return absl::ErrnoToStatus(error_number, absl::StrCat("cannot ", verb, " ", path));
}

absl::StatusOr<OpenFile> OpenFile::Open(const std::string& path, Mode mode) {
  int flags = O_CLOEXEC;
  const char* verb = "open";
  switch (mode) {
    case Mode::kRead:
      // Not blocking: a named pipe in the place of a file must not hang its reader.
      flags |= O_RDONLY | O_NONBLOCK;
      break;
    case Mode::kWrite:
      flags |= O_WRONLY;
      verb = "open for writing";
      break;
    case Mode::kCreate:
      flags |= O_WRONLY | O_CREAT | O_EXCL;
      verb = "create";
      break;
  }
  const int descriptor = open(path.c_str(), flags, 0644);
  if (descriptor < 0) return FileError(errno, verb, path);
  return OpenFile(descriptor, path);
}

OpenFile::OpenFile(OpenFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<uint64_t> OpenFile::Size() const {
  struct stat info;
  if (fstat(descriptor_, &info) != 0) return FileError(errno, "look at", path_);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path_, " is not a regular file"));
  }
  return static_cast<uint64_t>(info.st_size);
}

absl::Status OpenFile::ReadAt(uint64_t offset, void* out, uint64_t size) const {
  char* to = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got =
        pread(descriptor_, to, std::min(size, kPieceBytes), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return FileError(errno, "read", path_);
    }
    if (got == 0) {
      return absl::DataLossError(
          absl::StrCat(path_, " ends at byte ", offset, ", where ", size, " more are expected"));
    }
    to += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

absl::Status OpenFile::ReadPieces(
    uint64_t offset, uint64_t size,
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

absl::Status OpenFile::WriteAt(uint64_t offset, const void* data, uint64_t size) const {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t put = pwrite(descriptor_, from, size, static_cast<off_t>(offset));
    if (put < 0) {
      if (errno == EINTR) continue;
      return FileError(errno, "write", path_);
    }
    from += put;
    offset += static_cast<uint64_t>(put);
    size -= static_cast<uint64_t>(put);
  }
  return absl::OkStatus();
}

absl::Status OpenFile::Allocate(uint64_t size) const {
  if (size > 0) {
    int failed;
    do {
      failed = fallocate(descriptor_, 0, 0, static_cast<off_t>(size)) == 0 ? 0 : errno;
    } while (failed == EINTR);
    // Where the file system cannot reserve room, a full disk shows when the data is written.
    if (failed != 0 && failed != EOPNOTSUPP && failed != ENOSYS) {
      return FileError(failed, absl::StrCat("reserve ", size, " bytes for").c_str(), path_);
    }
  }
  if (ftruncate(descriptor_, static_cast<off_t>(size)) != 0) {
    return FileError(errno, "resize", path_);
  }
  return absl::OkStatus();
}

absl::Status OpenFile::Sync() const {
  if (fsync(descriptor_) != 0) return FileError(errno, "sync", path_);
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t limit_bytes) {
  SHOAL_ASSIGN_OR_RETURN(const OpenFile file, OpenFile::Open(path, OpenFile::Mode::kRead));
  SHOAL_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  if (size > limit_bytes) {
    return absl::DataLossError(
        absl::StrCat(path, " has ", size, " bytes; at most ", limit_bytes, " can be right"));
  }
  std::string content(size, '\0');
  SHOAL_RETURN_IF_ERROR(file.ReadAt(0, content.data(), size));
  return content;
}

absl::Status WriteNewFile(const std::string& path, const std::string& content) {
  SHOAL_ASSIGN_OR_RETURN(const OpenFile file, OpenFile::Open(path, OpenFile::Mode::kCreate));
  SHOAL_RETURN_IF_ERROR(file.WriteAt(0, content.data(), content.size()));
  return file.Sync();
}

absl::Status ReplaceFile(const std::string& path, const std::string& content) {
  const std::string beside = absl::StrCat(path, ".tmp");
  if (unlink(beside.c_str()) != 0 && errno != ENOENT) return FileError(errno, "remove", beside);
  SHOAL_RETURN_IF_ERROR(WriteNewFile(beside, content));
  if (rename(beside.c_str(), path.c_str()) != 0) return FileError(errno, "rename", beside);
  return SyncDirectory(std::filesystem::path(path).parent_path().string());
}

absl::Status SyncDirectory(const std::string& directory) {
  SHOAL_ASSIGN_OR_RETURN(const OpenFile file, OpenFile::Open(directory, OpenFile::Mode::kRead));
  return file.Sync();
}

absl::StatusOr<std::string> MakeNewDirectory(const std::string& path) {
  std::string name = path;
  for (int number = 2; number <= kDirectoryAttempts; ++number) {
    if (mkdir(name.c_str(), 0755) == 0) return name;
    if (errno != EEXIST) return FileError(errno, "create directory", name);
    name = absl::StrCat(path, "-", number);
  }
  return absl::AlreadyExistsError(absl::StrCat("cannot create directory ", path, ": it and ",
                                               kDirectoryAttempts, " names after it are taken"));
}

absl::Status MakeDirectories(const std::string& directory) {
  std::error_code ignored;
  if (std::filesystem::is_directory(directory, ignored)) return absl::OkStatus();
  const std::string parent = std::filesystem::path(directory).parent_path().string();
  if (parent != directory) SHOAL_RETURN_IF_ERROR(MakeDirectories(parent));
  if (mkdir(directory.c_str(), 0755) != 0) {
    const int failed = errno;
    // Somebody else may have made it meanwhile.
    if (std::filesystem::is_directory(directory, ignored)) return absl::OkStatus();
    return FileError(failed, "create directory", directory);
  }
  return SyncDirectory(parent);
}

std::string AbsolutePath(const std::string& path) {
  std::error_code failed;
  std::filesystem::path absolute = std::filesystem::absolute(path, failed);
  if (failed) return path;
  absolute = absolute.lexically_normal();
  if (!absolute.has_filename() && absolute.has_relative_path()) absolute = absolute.parent_path();
  return absolute.string();
}

}  // namespace shoal
