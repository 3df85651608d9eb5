#include "common/files/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/text/shell_word.h"
#include "common/files/durable_file.h"

namespace shoal {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

absl::Status CheckPrivateDirectory(const std::string& directory, bool only_owner_reads) {
  struct stat info;
  if (lstat(directory.c_str(), &info) != 0) return FileError(errno, "stat", directory);
  if (S_ISLNK(info.st_mode)) return LinkError(directory);
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(directory, " is a file, not a directory"));
  }
  if ((info.st_mode & (only_owner_reads ? kOthers : kOthersWrite)) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s has mode %04o: other users can %s it; type `chmod 700 %s`, or name a new directory",
      directory, info.st_mode & 07777, only_owner_reads ? "read or write" : "write",
      ShellWord(directory)));
}

absl::Status WriteNewPrivateFile(const std::string& path, const std::string& content) {
  const int descriptor =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor < 0) return FileError(errno, "create", path);
  const absl::Cleanup close_it = [descriptor] { close(descriptor); };
  absl::Cleanup remove_it = [&path] { unlink(path.c_str()); };
  for (size_t written = 0; written < content.size();) {
    const ssize_t put = write(descriptor, content.data() + written, content.size() - written);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return FileError(errno, "write", path);
    written += static_cast<size_t>(put);
  }
  if (fsync(descriptor) != 0) return FileError(errno, "sync", path);
  std::move(remove_it).Cancel();
  return absl::OkStatus();
}

}  // namespace

absl::Status MakePrivateDirectory(const std::string& directory, bool only_owner_reads) {
  const std::string absolute = AbsolutePath(directory);
  const std::string parent = ParentDirectory(absolute);
  SHOAL_RETURN_IF_ERROR(MakeDirectories(parent, RealFileSystem(), DirectoryAccess::kOutput));
  if (mkdir(absolute.c_str(), S_IRWXU) == 0) return RealFileSystem()->SyncDirectory(parent);
  if (errno != EEXIST) return FileError(errno, "create directory", absolute);
  return CheckPrivateDirectory(absolute, only_owner_reads);
}

absl::Status WriteNewPrivateFiles(const std::string& directory, const std::vector<NewFile>& files) {
  std::vector<std::string> written;
  absl::Cleanup remove_them = [&written] {
    for (const std::string& path : written) unlink(path.c_str());
  };
  for (const NewFile& file : files) {
    const std::string path = absl::StrCat(directory, "/", file.name);
    SHOAL_RETURN_IF_ERROR(WriteNewPrivateFile(path, file.content));
    written.push_back(path);
  }
  SHOAL_RETURN_IF_ERROR(RealFileSystem()->SyncDirectory(directory));
  std::move(remove_them).Cancel();
  return absl::OkStatus();
}

absl::StatusOr<HeldDirectory> HeldDirectory::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return FileError(errno, "open directory", path);
  return HeldDirectory(descriptor, path);
}

HeldDirectory::~HeldDirectory() {
  if (descriptor_ >= 0) close(descriptor_);
}

HeldDirectory::HeldDirectory(HeldDirectory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(other.path_) {}

bool HeldDirectory::Has(const std::string& name) const {
  struct stat info;
  return fstatat(descriptor_, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

absl::StatusOr<OwnedFile> HeldDirectory::Read(const std::string& name, uint64_t limit_bytes) const {
  const std::string path = PathOf(name);
  // Non-blocking: otherwise a named pipe in place of a file would hang its reader.
  const int descriptor = openat(descriptor_, name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return FileError(errno, "open", path);
  const absl::Cleanup close_it = [descriptor] { close(descriptor); };
  struct stat info;
  if (fstat(descriptor, &info) != 0) return FileError(errno, "stat", path);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  }
  OwnedFile file = {.path = path, .mode = info.st_mode & 0777, .owner = info.st_uid};
  // Reads one byte more than allowed. The file may grow meanwhile.
  file.content.resize(limit_bytes + 1);
  size_t size = 0;
  while (size < file.content.size()) {
    const ssize_t got = read(descriptor, file.content.data() + size, file.content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", path);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > limit_bytes) {
    return absl::DataLossError(
        absl::StrCat(path, " is too large; at most ", limit_bytes, " bytes are read"));
  }
  file.content.resize(size);
  return file;
}

}  // namespace shoal
