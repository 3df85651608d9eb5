#include "common/rpc/shared/own_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/match.h"

namespace shoal {
namespace {

// Whether a socket can be bound to the address: only addresses of this machine allow this.
template <typename Address>
bool CanBind(const Address& address, int family) {
  const int bound = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (bound < 0) return false;
  const bool own = bind(bound, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(bound);
  return own;
}

}  // namespace

bool IsOwnAddress(const std::string& peer) {
  if (absl::StartsWith(peer, "unix:")) return true;
  const size_t port = peer.rfind(':');
  if (port == std::string::npos) return false;
  const bool bracketed = port > 2 && peer[0] == '[';
  const std::string host = bracketed ? peer.substr(1, port - 2) : peer.substr(0, port);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) return CanBind(v4, AF_INET);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  return inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1 && CanBind(v6, AF_INET6);
}

}  // namespace shoal
