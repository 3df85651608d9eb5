#include "worker/input/files/file_content.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "absl/strings/str_cat.h"
#include "common/base/missing_path.h"
#include "common/base/status_macros.h"
#include "worker/input/files/data_roots.h"
#include "worker/input/files/joined_errors.h"

namespace shoal {

absl::Status PathError(int error, const std::string& path) {
  if (error == ENOENT) return MissingPath(path);
  const absl::Status status = absl::ErrnoToStatus(error, path);
  // Abseil has no code for ELOOP.
  return error == ELOOP ? absl::InvalidArgumentError(status.message()) : status;
}

absl::StatusOr<FileDescriptor> OpenRegularFile(const std::string& path,
                                               const std::vector<std::string>& roots,
                                               const char* expected, uint64_t* size) {
  SHOAL_ASSIGN_OR_RETURN(FileDescriptor file, OpenBelowRoots(path, roots));
  struct stat info;
  if (fstat(file.get(), &info) != 0) return PathError(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is ", S_ISDIR(info.st_mode) ? "a directory" : "not a regular file",
                     "; ", expected));
  }
  *size = static_cast<uint64_t>(info.st_size);
  return file;
}

absl::Status ReadAt(const FileDescriptor& file, const std::string& path, uint64_t offset, void* out,
                    uint64_t size) {
  for (uint64_t done = 0; done < size;) {
    const ssize_t count = pread(file.get(), static_cast<char*>(out) + done, size - done,
                                static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat(path, ": reading at byte ", offset + done));
    }
    if (count == 0) {
      return absl::DataLossError(absl::StrCat(path, ": ends at byte ", offset + done,
                                              "; expected at least ", offset + size, " bytes"));
    }
    done += static_cast<uint64_t>(count);
  }
  return absl::OkStatus();
}

absl::Status ReadWholeFile(const std::string& path, const std::vector<std::string>& roots,
                           EncodedBytes* out) {
  uint64_t size = 0;
  SHOAL_ASSIGN_OR_RETURN(const FileDescriptor file,
                         OpenRegularFile(path, roots, "expected a picture", &size));
  SHOAL_RETURN_IF_ERROR(out->Resize(size, path));
  return ReadAt(file, path, 0, out->bytes().data(), size);
}

absl::StatusOr<std::vector<std::string>> ExpandPaths(const DataSource& source) {
  std::vector<std::string> files;
  absl::Status status;
  for (const std::string& path : source.paths) {
    const size_t wild = path.find_first_of("*?[");
    if (wild == std::string::npos) {
      struct stat info;
      if (!source.roots.empty()) {
        status = JoinErrors(status, CheckBelowRoots(path, source.roots));
      } else if (stat(path.c_str(), &info) != 0 && errno == ENOENT) {
        status = JoinErrors(status, MissingPath(path));
      }
      files.push_back(path);
      continue;
    }
    // Lists no directory outside of the roots.
    if (const absl::Status below =
            CheckBelowRoots(path.substr(0, path.rfind('/', wild) + 1), source.roots);
        !below.ok()) {
      status = JoinErrors(status, below);
      continue;
    }
    glob_t found = {};
    if (glob(path.c_str(), 0, nullptr, &found) == 0) {
      const std::span<char* const> matches(found.gl_pathv, found.gl_pathc);
      files.insert(files.end(), matches.begin(), matches.end());
      // A link may lead elsewhere. The error names the pattern: the name of the match is not the
      // job's.
      const bool below = std::all_of(matches.begin(), matches.end(), [&](const char* match) {
        return CheckBelowRoots(match, source.roots).ok();
      });
      if (!below) status = JoinErrors(status, OutsideOfRoots(path, source.roots));
    } else {
      status = JoinErrors(status, absl::NotFoundError(path + ": matches no file"));
    }
    globfree(&found);
  }
  if (!status.ok()) return status;
  return files;
}

}  // namespace shoal
