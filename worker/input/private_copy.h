#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "worker/input/decoded_stream.h"

namespace shoal {

// The content of a file, decoded once into a temporary file that has no name and is mapped into
// memory. A file and not the heap, so that the kernel can drop its pages when memory is short, and
// data larger than memory works. It lies in $TMPDIR (/tmp without one), which had better be on a
// disk, and goes with the object, or the process. Nobody else can open it, and so nobody can
// shorten it under the mapping, which would be a SIGBUS. Immutable, thread-safe.
class PrivateCopy {
 public:
  // Copies `head`, what was already read from `stream`, and the rest of the stream. The content
  // must be `size` > 0 bytes long: otherwise kDataLoss with the offset. `path` is for messages.
  static absl::StatusOr<PrivateCopy> Make(std::string_view head, DecodedStream& stream,
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
