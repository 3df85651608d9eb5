#include "worker/input/files/temporary_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace shoal {

std::string TemporaryDirectory() {
  const char* directory = std::getenv("TMPDIR");
  return directory != nullptr && *directory != '\0' ? directory : "/tmp";
}

FileDescriptor OpenTemporaryFile(const std::string& directory) {
  FileDescriptor file(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.ok()) return file;
  // Some file systems do not support O_TMPFILE.
  std::string name = absl::StrCat(directory, "/shoal-input-XXXXXX");
  FileDescriptor named(mkostemp(name.data(), O_CLOEXEC));
  if (named.ok()) unlink(name.c_str());
  return named;
}

bool MeasureDiskOf(const FileDescriptor& file, DiskSpace* space) {
  struct statvfs disk;
  if (fstatvfs(file.get(), &disk) != 0) return false;
  *space = {.free_bytes = uint64_t{disk.f_bavail} * disk.f_frsize,
            .bytes = uint64_t{disk.f_blocks} * disk.f_frsize};
  return true;
}

int CheckDiskSpace(const FileDescriptor& file, uint64_t bytes, const MeasureDisk& measure) {
  constexpr uint64_t kShareLeftFree = 20;
  constexpr uint64_t kMaxLeftFree = uint64_t{256} << 20;
  DiskSpace space;
  if (!measure(file, &space)) return errno;
  if (space.bytes == 0) return 0;
  const uint64_t left_free = std::min(space.bytes / kShareLeftFree, kMaxLeftFree);
  return space.free_bytes < left_free || space.free_bytes - left_free < bytes ? ENOSPC : 0;
}

absl::Status NoTemporaryFile(int error, const std::string& name, uint64_t bytes) {
  return absl::ErrnoToStatus(
      error, absl::StrCat(name, ": cannot make a temporary file of ", bytes, " bytes in ",
                          TemporaryDirectory(),
                          ", where up to 256 MiB must stay free; set TMPDIR to another directory"));
}

}  // namespace shoal
