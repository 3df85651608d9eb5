#include "common/daemon/settings/bind_address.h"

#include "absl/strings/str_cat.h"

namespace shoal {

absl::StatusOr<BindAddress> BindAddressOf(const Address& own, PortSecurity security) {
  const bool ipv6 = own.host.find(':') != std::string::npos;
  if (own.IsLoopback()) {
    // Makes "localhost" the same address on every machine, whose own order of addresses may differ.
    const bool literal = ipv6 || own.host.find_first_not_of("0123456789.") == std::string::npos;
    return BindAddress{literal ? own.ToString() : absl::StrCat("127.0.0.1:", own.port), ""};
  }
  // Either address accepts IPv4 and IPv6 if the host has both (listening_socket.h).
  const std::string listen = absl::StrCat(ipv6 ? "[::]:" : "0.0.0.0:", own.port);
  switch (security) {
    case PortSecurity::kTls:
      return BindAddress{listen, ""};
    case PortSecurity::kInsecure:
      return BindAddress{listen, absl::StrCat("insecure: listening on all interfaces (", listen,
                                              "): traffic is not encrypted, and everyone who "
                                              "reaches this port can claim, push, read and stop; "
                                              "give --tls_dir=DIR instead of --insecure "
                                              "(docs/security.md)")};
    case PortSecurity::kNone:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      own.ToString(), ": is an address beyond loopback, and there is no TLS: everyone who reaches ",
      "the port could claim, push, read and stop. Give --tls_dir=DIR with certificates, which ",
      "`shoal cert` makes (docs/security.md), or --insecure if only machines that you trust reach ",
      "the port"));
}

}  // namespace shoal
