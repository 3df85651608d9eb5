#include "common/rpc/tls/replaceable_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

absl::Status MemoryFileError(const char* what) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot ", what, " a file in memory: ", absl::ErrnoToStatus(errno, "").message(),
                   "; raise the limit of open files (ulimit -n) or of memory"));
}

// Returns the descriptor of a file in memory with the content, which the caller closes.
absl::StatusOr<int> MakeFile(std::string_view content) {
  const int fd = memfd_create("shoal-tls", MFD_CLOEXEC);
  if (fd < 0) return MemoryFileError("make");
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0) {
      const absl::Status error = MemoryFileError("write");
      close(fd);
      return error;
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  return fd;
}

}  // namespace

absl::StatusOr<ReplaceableFile> ReplaceableFile::Create(std::string_view content) {
  SHOAL_ASSIGN_OR_RETURN(const int fd, MakeFile(content));
  return ReplaceableFile(fd);
}

ReplaceableFile::ReplaceableFile(ReplaceableFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

ReplaceableFile::~ReplaceableFile() {
  if (fd_ >= 0) close(fd_);
}

std::string ReplaceableFile::path() const { return absl::StrCat("/proc/self/fd/", fd_); }

absl::Status ReplaceableFile::Take(const ReplaceableFile& other) {
  // The number stays, and names the new file from one moment to the next.
  while (dup3(other.fd_, fd_, O_CLOEXEC) != fd_) {
    // Linux gives EBUSY while another thread opens a file.
    if (errno != EINTR && errno != EBUSY) return MemoryFileError("replace");
  }
  return absl::OkStatus();
}

}  // namespace shoal
