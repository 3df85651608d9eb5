#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/security/identity.h"

namespace shoal {

// A set of roles.
class RoleSet {
 public:
  constexpr RoleSet(std::initializer_list<Role> roles) {
    for (const Role role : roles) bits_ |= Bit(role);
  }
  constexpr bool Contains(Role role) const { return (bits_ & Bit(role)) != 0; }
  // Returns "operator or viewer".
  std::string ToString() const;

 private:
  static constexpr uint32_t Bit(Role role) { return uint32_t{1} << static_cast<int>(role); }
  uint32_t bits_ = 0;
};

// A row of the table: who may use a method, with all kinds of its messages, and which daemons serve
// it. /healthz and /readyz are open to everyone and have no row.
struct Permission {
  std::string_view method;  // of common/rpc/methods.h, or a path of the HTTP port
  RoleSet servers;
  RoleSet clients;
};

// kMetricsPath is the only "method" that is not of gRPC.
inline constexpr char kMetricsPath[] = "/metrics";

// Returns the whole table.
std::span<const Permission> Permissions();

// The functions below answer from the table. Each returns OK or kPermissionDenied; the message
// names the peer's identity, the method, and who may use it, and can be shown to the peer. All are
// stateless: any thread may call them.

// A daemon calls this when `peer` opens a stream or calls `method`, before it reads a message. OK
// if both are of the same trust domain and job, a daemon like `own` serves the method, and the
// peer's role may use it. kUnimplemented if `own` does not serve the method.
absl::Status CheckPermitted(const Identity& own, const Identity& peer, std::string_view method);

// A daemon calls this when `peer` says which index it has, in a WorkerHello or an ExchangeHello. OK
// if its certificate has the same index, or none: then it is an elastic worker, which may take any
// free index. The coordinator knows which are free; a ps believes it.
absl::Status CheckClaimedIndex(const Identity& peer, int claimed_index);

// A client calls this before it connects. OK if the table lets `own` use the method of some server.
absl::Status CheckMayCall(const Identity& own, std::string_view method);

// A client calls this during the handshake, before it sends anything. OK if the server's
// certificate is of the same trust domain and job, has a role that serves `method`, and has
// `index`, and if the table lets `own` use the method. `index` is that of the ps that the client
// wants. nullopt accepts any index: only for a daemon that a job has once.
absl::Status CheckServer(const Identity& own, const Identity& server, std::string_view method,
                         std::optional<int> index);

}  // namespace shoal
