#include "worker/input/files/data_roots.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/input/files/file_content.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

bool IsBelow(const std::string& path, const std::vector<std::string>& roots) {
  for (const std::string& root : roots) {
    if (root == "/" || path == root || path.starts_with(root + "/")) return true;
  }
  return false;
}

std::string LinkTo(const FileDescriptor& file) {
  return absl::StrCat("/proc/self/fd/", file.get());
}

// Opens the place alone. On failure, the result is not ok() and errno is set.
FileDescriptor OpenPlace(const std::string& path) {
  return FileDescriptor(open(path.c_str(), O_PATH | O_CLOEXEC));
}

absl::Status CheckPlace(const FileDescriptor& place, const std::string& path,
                        const std::vector<std::string>& roots) {
  std::error_code error;
  const std::string real = fs::read_symlink(LinkTo(place), error).string();
  if (error) return absl::ErrnoToStatus(error.value(), LinkTo(place));
  return IsBelow(real, roots) ? absl::OkStatus() : OutsideOfRoots(path, roots);
}

// Returns the error for a path that cannot be opened. Says nothing about files elsewhere, not even
// that there is none: the nearest directory that exists must be below a root.
absl::Status CannotOpen(int error, const std::string& path, const std::vector<std::string>& roots) {
  fs::path above = fs::path(path).lexically_normal();
  FileDescriptor place;
  while (!place.ok() && above.has_relative_path()) {
    above = above.parent_path();
    place = OpenPlace(above.string());
  }
  if (!place.ok()) return OutsideOfRoots(path, roots);
  SHOAL_RETURN_IF_ERROR(CheckPlace(place, path, roots));
  // Lists no directory for a similar name, because a link on the way may lead elsewhere.
  if (error == ENOENT) return absl::NotFoundError(path + ": No such file or directory");
  return PathError(error, path);
}

// Returns a descriptor of the place alone: nothing is opened for reading, which could act on a
// device. The check is about this descriptor. The path may lead elsewhere a moment later.
absl::StatusOr<FileDescriptor> FindBelowRoots(const std::string& path,
                                              const std::vector<std::string>& roots) {
  FileDescriptor place = OpenPlace(path);
  if (!place.ok()) return CannotOpen(errno, path, roots);
  SHOAL_RETURN_IF_ERROR(CheckPlace(place, path, roots));
  return place;
}

}  // namespace

absl::Status OutsideOfRoots(const std::string& path, const std::vector<std::string>& roots) {
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": is not below --data_root=", absl::StrJoin(roots, ":"),
      " after links are resolved, so this worker does not read it; name a file below it in the "
      "job, or start the worker with the file's directory in --data_root"));
}

absl::StatusOr<std::vector<std::string>> ResolveDataRoots(
    const std::vector<std::string>& directories) {
  std::vector<std::string> roots;
  for (const std::string& directory : directories) {
    std::error_code error;
    const fs::path real = fs::canonical(directory, error);
    if (error) return absl::InvalidArgumentError(absl::StrCat(directory, ": ", error.message()));
    if (!fs::is_directory(real, error))
      return absl::InvalidArgumentError(directory + ": is not a directory");
    roots.push_back(real.string());
  }
  return roots;
}

absl::StatusOr<FileDescriptor> OpenBelowRoots(const std::string& path,
                                              const std::vector<std::string>& roots) {
  std::string opened = path;
  FileDescriptor place;
  if (!roots.empty()) {
    SHOAL_ASSIGN_OR_RETURN(place, FindBelowRoots(path, roots));
    opened = LinkTo(place);
  }
  FileDescriptor file(open(opened.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.ok()) return PathError(errno, path);
  return file;
}

absl::Status CheckBelowRoots(const std::string& path, const std::vector<std::string>& roots) {
  return roots.empty() ? absl::OkStatus() : FindBelowRoots(path, roots).status();
}

}  // namespace shoal
