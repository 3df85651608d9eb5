#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

struct gzFile_s;

namespace shoal {

// Reads a file from its beginning to its end and decodes gzip data. Detects gzip by content, not by
// name. Not thread-safe.
class DecodedStream {
 public:
  // `path` is for messages. The caller keeps owning `fd`. Reads through a duplicate, which moves
  // the position of `fd`.
  static absl::StatusOr<DecodedStream> Open(int fd, const std::string& path);

  // Fills `out` and returns the number of bytes, fewer only at the end of the data. Errors name the
  // file, the offset and the problem: damaged or truncated gzip data, or an unreadable file.
  absl::StatusOr<size_t> Read(std::span<char> out);
  // Whether the file is gzip.
  bool compressed() const { return compressed_; }
  // Decoded bytes read so far.
  uint64_t position() const { return position_; }

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };

  DecodedStream(std::string path, std::unique_ptr<gzFile_s, Close> file);
  absl::Status Error(const std::string& what) const;

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  bool compressed_;
  uint64_t position_ = 0;
};

}  // namespace shoal
