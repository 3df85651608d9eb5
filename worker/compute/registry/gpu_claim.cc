#include "worker/compute/registry/gpu_claim.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace shoal {

// Binds a socket whose name lies in no folder (an abstract socket). The kernel gives the name to
// one process at a time, of any user, and frees it when that process ends.
absl::StatusOr<std::unique_ptr<GpuClaim>> GpuClaim::Take(const std::string& uuid) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string name = absl::StrCat("shoal-worker on ", uuid);
  if (1 + name.size() > sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the name of a GPU is too long: ", uuid));
  }
  std::copy(name.begin(), name.end(), address.sun_path + 1);  // after a leading 0
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::UnknownError(absl::StrCat("socket: ", std::strerror(errno)));
  std::unique_ptr<GpuClaim> claim(new GpuClaim(fd));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return claim;
  if (errno == EADDRINUSE) {
    return absl::AlreadyExistsError(absl::StrCat("another shoal-worker computes on ", uuid));
  }
  return absl::UnknownError(absl::StrCat("bind: ", std::strerror(errno)));
}

GpuClaim::~GpuClaim() { close(socket_); }

}  // namespace shoal
