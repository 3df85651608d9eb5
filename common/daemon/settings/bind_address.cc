#include "common/daemon/settings/bind_address.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/log/logging.h"

namespace shoal {

BindAddress BindAddressOf(const Address& own) {
  const bool ipv6 = own.host.find(':') != std::string::npos;
  if (own.IsLoopback()) {
    // Makes "localhost" the same address on every machine, whose own order of addresses may differ.
    const bool literal = ipv6 || own.host.find_first_not_of("0123456789.") == std::string::npos;
    return {literal ? own.ToString() : absl::StrCat("127.0.0.1:", own.port), ""};
  }
  // Either address accepts IPv4 and IPv6 if the host has both (listening_socket.h).
  const std::string listen = absl::StrCat(ipv6 ? "[::]:" : "0.0.0.0:", own.port);
  return {listen, absl::StrCat(
                      "listening on all interfaces (", listen,
                      "): traffic is not encrypted and peers "
                      "are not authenticated; let only the cluster's own network reach this port")};
}

absl::Status ListenAsTask(const Address& own, Network* network, Network::Acceptor acceptor) {
  const BindAddress address = BindAddressOf(own);
  if (!address.warning.empty()) LogWarning(address.warning);
  SHOAL_ASSIGN_OR_RETURN(const std::string bound,
                         network->Listen(address.listen, std::move(acceptor)));
  LogInfo("listening", {{"address", bound}});
  return absl::OkStatus();
}

}  // namespace shoal
