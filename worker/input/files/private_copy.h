#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace shoal {

// Fills `out` with the next bytes and returns their number, fewer only at the end.
using ReadContent = std::function<absl::StatusOr<size_t>(std::span<char> out)>;

// The content of a file, decoded once into an unnamed temporary file that is mapped into memory. It
// uses a file instead of the heap. The kernel can then drop its pages when memory is short, and
// data may be larger than memory. The file is in $TMPDIR (default /tmp), which should be on a disk,
// and is removed with the object or the process. No other process can open it and shorten it under
// the mapping, which would cause SIGBUS. Immutable, thread-safe.
class PrivateCopy {
 public:
  // Copies `head`, the bytes of the content that were already read, and the rest from `read`.
  // Returns kDataLoss, with the offset, unless the content has exactly `size` > 0 bytes. If there
  // is no space for it, returns an error before writing. `path` is for messages.
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
