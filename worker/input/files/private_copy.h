#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace shoal {

// Fills `out` with what comes next; returns fewer bytes only at the end.
using ReadContent = std::function<absl::StatusOr<size_t>(std::span<char> out)>;

// The content of a file, decoded once into a temporary file that has no name and is mapped into
// memory. A file and not the heap, so that the kernel can drop its pages when memory is short, and
// data larger than memory works. It lies in $TMPDIR (/tmp without one), which had better be on a
// disk, and goes with the object, or the process. Nobody else can open it, and so nobody can
// shorten it under the mapping, which would be a SIGBUS. Immutable, thread-safe.
class PrivateCopy {
 public:
  // Copies `head`, what was already read of the content, and the rest, which `read` has. The
  // content must be `size` > 0 bytes long: otherwise kDataLoss with the offset. Where there is no
  // room for it, an error before anything is written. `path` is for messages.
  static absl::StatusOr<PrivateCopy> Make(std::string_view head, const ReadContent& read,
                                          uint64_t size, const std::string& path);
  PrivateCopy(PrivateCopy&& other) noexcept;
  PrivateCopy& operator=(PrivateCopy&&) = delete;
  ~PrivateCopy();

  std::span<const char> bytes() const { return bytes_; }

 private:
  explicit PrivateCopy(std::span<const char> bytes) : bytes_(bytes) {}

  std::span<const char> bytes_;
};

}  // namespace shoal
