#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace shoal {

// Follows the frames of HTTP/2 that a client sends. gRPC 1.51 has no limit for one kind: it reads
// headers that go on in CONTINUATION frames for as long as they come, keeps ten bytes for each of
// theirs, and reads the beginning of an unfinished one again with every frame.
class HeaderScanner {
 public:
  // Bytes of one request's headers. gRPC refuses those above 8 KiB once it has read them.
  static constexpr size_t kMaxHeaderBytes = 64 << 10;

  // The next bytes of the connection; false from then on when headers are longer than that.
  bool Accept(const uint8_t* data, size_t size);

 private:
  void OnFrame();

  size_t preface_left_ = 24;
  uint8_t head_[9];
  size_t head_size_ = 0;
  size_t payload_left_ = 0;
  size_t header_bytes_ = 0;  // of the headers that have not ended
};

// Has reads from this connection, of gRPC and whoever else calls recvmsg, fail with ECONNRESET
// once its headers are too long, for as long as the descriptor is that connection. `on_flood` is
// called then, once, by the thread that reads; it is kept after the connection's end, until another
// has the descriptor, and maybe for ever. Thread-safe.
void LimitHeaders(int fd, std::function<void()> on_flood);

}  // namespace shoal
