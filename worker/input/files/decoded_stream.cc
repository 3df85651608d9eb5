#include "worker/input/files/decoded_stream.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/memory/memory_limit.h"

namespace shoal {

void DecodedStream::Close::operator()(gzFile_s* file) const { gzclose(file); }

absl::StatusOr<DecodedStream> DecodedStream::Open(int fd, const std::string& path) {
  const int own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own_fd < 0) return absl::ErrnoToStatus(errno, path);
  std::unique_ptr<gzFile_s, Close> file(gzdopen(own_fd, "rb"));
  if (file == nullptr) {
    close(own_fd);
    return OutOfMemory("reading " + path);
  }
  gzbuffer(file.get(), 256 << 10);
  return DecodedStream(path, std::move(file));
}

DecodedStream::DecodedStream(std::string path, std::unique_ptr<gzFile_s, Close> file)
    : path_(std::move(path)), file_(std::move(file)), compressed_(gzdirect(file_.get()) == 0) {}

absl::StatusOr<size_t> DecodedStream::Read(std::span<char> out) {
  constexpr size_t kMaxPiece = 1 << 30;  // gzread counts in an int
  size_t done = 0;
  while (done < out.size()) {
    const int count = gzread(file_.get(), out.data() + done,
                             static_cast<unsigned>(std::min(out.size() - done, kMaxPiece)));
    int code = Z_OK;
    const char* what = gzerror(file_.get(), &code);
    if (code == Z_ERRNO) return absl::ErrnoToStatus(errno, path_);
    if (count > 0) {
      done += static_cast<size_t>(count);
      position_ += static_cast<uint64_t>(count);
    }
    if (code == Z_BUF_ERROR) return Error("the gzip data ends early");
    if (count < 0) {
      // zlib puts its own name before the message.
      const char* message = std::strstr(what, ": ");
      return Error(absl::StrCat("damaged gzip data, ", message != nullptr ? message + 2 : what));
    }
    if (count == 0) break;
  }
  return done;
}

absl::Status DecodedStream::Error(const std::string& what) const {
  return absl::DataLossError(absl::StrCat(path_, ": ", what, " at byte ", gzoffset(file_.get()),
                                          " of the file, byte ", position_, " decoded"));
}

}  // namespace shoal
