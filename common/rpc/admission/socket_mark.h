#pragma once

#include <sys/types.h>

namespace shoal {

// Remembers a socket that another owner may close at any time. Tells it apart from another file
// that gets the same descriptor later.
class SocketMark {
 public:
  // Requires that `fd` is open.
  explicit SocketMark(int fd);

  int fd() const { return fd_; }
  // Whether the descriptor is still that socket.
  bool IsOpen() const;
  // Ends the connection. To its owner it then looks closed by the peer. No effect on another file.
  void ShutDown() const;

 private:
  int fd_;
  ino_t inode_;
};

}  // namespace shoal
