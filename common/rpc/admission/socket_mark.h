#pragma once

#include <sys/types.h>

namespace shoal {

// Tells a socket that somebody else owns and may close at any time from another file that has its
// descriptor by then.
class SocketMark {
 public:
  // `fd` is open.
  explicit SocketMark(int fd);

  int fd() const { return fd_; }
  // The descriptor is still that socket.
  bool IsOpen() const;
  // Ends the connection, which its owner then finds closed by the peer. No effect on another file.
  void ShutDown() const;

 private:
  int fd_;
  ino_t inode_;
};

}  // namespace shoal
