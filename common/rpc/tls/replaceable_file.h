#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace shoal {

// A file in memory with a path, whose content is replaced as a whole. For libraries that read a
// secret from a path only: nothing is written to a disk, and only this user can open the path.
// Readers at any thread see the old content or the new one. The owner replaces it on one thread.
class ReplaceableFile {
 public:
  // kResourceExhausted if no descriptor or memory is left.
  static absl::StatusOr<ReplaceableFile> Create(std::string_view content);
  ReplaceableFile(ReplaceableFile&& other) noexcept;
  ReplaceableFile& operator=(ReplaceableFile&&) = delete;
  ~ReplaceableFile();

  // Returns "/proc/self/fd/7". It is the same for all contents.
  std::string path() const;
  // Takes the content of `other` at its own path. All that can fail for want of descriptors or
  // memory is in Create(), so several files are replaced together: create all, then take each.
  // On an error the old content stays.
  absl::Status Take(const ReplaceableFile& other);

 private:
  explicit ReplaceableFile(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace shoal
