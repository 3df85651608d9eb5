#include "common/rpc/listen_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

// The errno of listening there, found by trying it; 0 when it worked.
int TryListen(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  // As servers do, so that connections of a former one do not count.
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  int error = 0;
  if (bind(fd, address.ai_addr, address.ai_addrlen) != 0 || listen(fd, 1) != 0) error = errno;
  close(fd);
  return error;
}

std::string Remedy(int error, const std::string& host, const std::string& port) {
  switch (error) {
    case EADDRINUSE:
      return absl::StrCat("port ", port,
                          " is in use by another process; end that, or choose another port");
    case EACCES:
      return absl::StrCat("port ", port, " needs more rights; choose a port from 1024 on");
    case EADDRNOTAVAIL:
      return absl::StrCat(host,
                          " is not an address of this machine; use one that is, or 0.0.0.0 for "
                          "all of them");
    default:
      return std::strerror(error);
  }
}

}  // namespace

absl::Status CheckCanListen(const std::string& address) {
  if (address.starts_with("unix:")) return absl::OkStatus();
  const std::string failed = absl::StrCat("cannot listen at ", address, ": ");
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(failed, "an address has the form HOST:PORT, [IPV6]:PORT or unix:PATH"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  const std::string port = address.substr(colon + 1);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int unknown =
      getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (unknown != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        failed, "host or port are not known on this machine (", gai_strerror(unknown), ")"));
  }
  const int error = TryListen(*found);
  freeaddrinfo(found);
  if (error == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(failed, Remedy(error, host, port)));
}

}  // namespace shoal
