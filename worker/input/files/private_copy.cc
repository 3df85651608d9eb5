#include "worker/input/files/private_copy.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/files/temporary_file.h"

namespace shoal {
namespace {

// Returns false, with errno set, if it cannot write everything.
bool WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t count = write(fd, data.data(), data.size());
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) data.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace

absl::StatusOr<PrivateCopy> PrivateCopy::Make(std::string_view head, const ReadContent& read,
                                              uint64_t size, const std::string& path) {
  const auto no_room = [&](int error) { return NoTemporaryFile(error, path, size); };
  const FileDescriptor file = OpenTemporaryFile(TemporaryDirectory());
  if (!file.ok()) return no_room(errno);
  if (const int error = CheckDiskSpace(file, size); error != 0) return no_room(error);

  std::vector<char> buffer(256 << 10);
  std::string_view piece = head;
  uint64_t written = 0;
  while (!piece.empty()) {
    if (piece.size() > size - written) {
      return absl::DataLossError(
          absl::StrCat(path, ": has bytes after byte ", size, ", its end by its header"));
    }
    if (!WriteAll(file.get(), piece)) return no_room(errno);
    written += piece.size();
    SHOAL_ASSIGN_OR_RETURN(const size_t count, read(buffer));
    piece = std::string_view(buffer.data(), count);
  }
  if (written < size) {
    return absl::DataLossError(
        absl::StrCat(path, ": ends at byte ", written, "; its header says ", size, " bytes"));
  }

  void* address = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) return no_room(errno);
  return PrivateCopy(std::span(static_cast<const char*>(address), size));
}

PrivateCopy::PrivateCopy(PrivateCopy&& other) noexcept
    : bytes_(std::exchange(other.bytes_, std::span<const char>())) {}

PrivateCopy::~PrivateCopy() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace shoal
