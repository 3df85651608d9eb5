#include "common/rpc/admission/socket_mark.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shoal {
namespace {

ino_t InodeOf(int fd) {
  struct stat file = {};
  return fstat(fd, &file) == 0 ? file.st_ino : 0;
}

}  // namespace

SocketMark::SocketMark(int fd) : fd_(fd), inode_(InodeOf(fd)) {}

bool SocketMark::IsOpen() const { return InodeOf(fd_) == inode_; }

void SocketMark::ShutDown() const {
  // Uses its own copy of the descriptor, which stays the same file between the two calls.
  const int own = fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return;
  if (InodeOf(own) == inode_) shutdown(own, SHUT_RDWR);
  close(own);
}

}  // namespace shoal
