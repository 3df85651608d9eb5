#include "common/rpc/admission/listening_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

constexpr char kUnix[] = "unix:";

// Returns a socket that listens at the address, or -1 and errno.
int Listen(const sockaddr* address, socklen_t size) {
  const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  // Reuses the address even if connections of a former server still exist.
  const int on = 1;
  const int off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address->sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (bind(fd, address, size) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// Listens at all IPv6 addresses, and at all IPv4 addresses, which are mapped into IPv6. Returns
// like Listen().
int ListenEverywhere(in_port_t port) {
  sockaddr_in6 any = {};
  any.sin6_family = AF_INET6;
  any.sin6_port = port;
  any.sin6_addr = in6addr_any;
  return Listen(reinterpret_cast<const sockaddr*>(&any), sizeof(any));
}

bool IsEverywhere(const addrinfo& address) {
  if (address.ai_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(address.ai_addr)->sin_addr.s_addr == INADDR_ANY;
  }
  return IN6_IS_ADDR_UNSPECIFIED(
      &reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr);
}

// Listens at the address, or at all addresses if it means all. Returns like Listen().
int ListenAt(const addrinfo& address) {
  if (IsEverywhere(address)) {
    // The port has the same offset in sockaddr_in and sockaddr_in6.
    const int fd =
        ListenEverywhere(reinterpret_cast<const sockaddr_in*>(address.ai_addr)->sin_port);
    const bool no_ipv6 = fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL);
    if (!no_ipv6) return fd;
  }
  return Listen(address.ai_addr, address.ai_addrlen);
}

int PortOf(int fd) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof(bound);
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
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

// Returns the descriptor, or why there is none.
absl::StatusOr<int> ListenAtPath(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the path of a socket has from 1 to ",
                                                   sizeof(address.sun_path) - 1, " characters"));
  }
  path.copy(address.sun_path, path.size());
  // Removes the socket of a former server.
  struct stat found = {};
  if (stat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) unlink(path.c_str());
  const int fd = Listen(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  if (fd < 0) return absl::FailedPreconditionError(std::strerror(errno));
  return fd;
}

absl::StatusOr<int> ListenAtHostAndPort(const std::string& address, size_t colon) {
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
    return absl::InvalidArgumentError(
        absl::StrCat("host or port are not known on this machine (", gai_strerror(unknown), ")"));
  }
  const int fd = ListenAt(*found);
  const int error = errno;
  freeaddrinfo(found);
  if (fd < 0) return absl::FailedPreconditionError(Remedy(error, host, port));
  return fd;
}

}  // namespace

absl::StatusOr<ListeningSocket> ListeningSocket::Open(const std::string& address) {
  const bool is_path = address.starts_with(kUnix);
  const size_t colon = address.rfind(':');
  absl::StatusOr<int> fd =
      absl::InvalidArgumentError("an address has the form HOST:PORT, [IPV6]:PORT or unix:PATH");
  if (is_path) {
    fd = ListenAtPath(address.substr(sizeof(kUnix) - 1));
  } else if (colon != std::string::npos && colon + 1 < address.size()) {
    fd = ListenAtHostAndPort(address, colon);
  }
  if (!fd.ok()) {
    return absl::Status(fd.status().code(), absl::StrCat("cannot listen at ", address, ": ",
                                                         std::string(fd.status().message())));
  }
  return ListeningSocket(
      *fd, is_path ? address : absl::StrCat(address.substr(0, colon + 1), PortOf(*fd)));
}

ListeningSocket::~ListeningSocket() {
  if (fd_ < 0) return;
  close(fd_);
  if (address_.starts_with(kUnix)) unlink(address_.c_str() + sizeof(kUnix) - 1);
}

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), address_(std::move(other.address_)) {}

}  // namespace shoal
