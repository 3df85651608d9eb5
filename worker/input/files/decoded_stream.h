#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

struct gzFile_s;

namespace shoal {

// A file read from its beginning to its end, gzip data decoded on the way. Whether it is gzip is
// told by its content, not its name. Not thread-safe.
class DecodedStream {
 public:
  // `path` is for messages. `fd` stays the caller's; a duplicate of it is read, so its position
  // moves.
  static absl::StatusOr<DecodedStream> Open(int fd, const std::string& path);

  // Fills `out`; returns fewer bytes only at the end of the data. An error names the file, the
  // offset and what is wrong: gzip data that is damaged or ends early, a file that cannot be read.
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
