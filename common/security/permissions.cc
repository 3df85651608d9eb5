#include "common/security/permissions.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/rpc/methods.h"

namespace shoal {
namespace {

// The one place that says who may do what. docs/security.md shows it to people.
constexpr Permission kPermissions[] = {
    {kWorkMethod, {Role::kCoordinator}, {Role::kWorker}},
    {kEvaluateMethod, {Role::kCoordinator}, {Role::kEvaluator}},
    {kExchangeMethod, {Role::kPs}, {Role::kWorker}},
    {kControlMethod, {Role::kPs}, {Role::kCoordinator}},
    {kStatusMethod, {Role::kCoordinator}, {Role::kOperator, Role::kViewer}},
    {kDrainMethod, {Role::kCoordinator}, {Role::kOperator}},
    {kCheckpointMethod, {Role::kCoordinator}, {Role::kOperator}},
    {kMetricsPath,
     {Role::kCoordinator, Role::kPs, Role::kWorker, Role::kEvaluator},
     {Role::kOperator, Role::kViewer}},
};

std::string NameAndUri(const Identity& identity) {
  return absl::StrCat(identity.RoleText(), " (", identity.ToUri(), ")");
}

absl::Status CheckSameJob(const Identity& own, const Identity& peer) {
  if (own.trust_domain != peer.trust_domain) {
    return absl::PermissionDeniedError(
        absl::StrCat(NameAndUri(peer), " is of the trust domain \"", peer.trust_domain, "\", but ",
                     NameAndUri(own), " accepts only \"", own.trust_domain,
                     "\"; give both certificates of one trust domain"));
  }
  if (own.job != peer.job) {
    return absl::PermissionDeniedError(
        absl::StrCat(NameAndUri(peer), " is of the job \"", peer.job, "\", but ", NameAndUri(own),
                     " accepts only \"", own.job, "\"; give both certificates of one job"));
  }
  return absl::OkStatus();
}

// Returns the row of a method; null if no daemon serves it.
const Permission* Find(std::string_view method) {
  for (const Permission& row : kPermissions) {
    if (row.method == method) return &row;
  }
  return nullptr;
}

// Returns OK if the client's role may use the method.
absl::Status CheckMayUse(const Identity& client, const Permission& row) {
  if (row.clients.Contains(client.role)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(NameAndUri(client), " may not use ", std::string(row.method),
                   "; it needs a certificate with the role ", row.clients.ToString()));
}

absl::Status NotServed(const Identity& own, std::string_view method) {
  return absl::UnimplementedError(
      absl::StrCat(NameAndUri(own), " does not serve ", std::string(method)));
}

}  // namespace

std::string RoleSet::ToString() const {
  std::vector<std::string> names;
  for (const Role role : kAllRoles) {
    if (Contains(role)) names.push_back(RoleName(role));
  }
  return absl::StrJoin(names, " or ");
}

std::span<const Permission> Permissions() { return kPermissions; }

absl::Status CheckPermitted(const Identity& own, const Identity& peer, std::string_view method) {
  const Permission* const row = Find(method);
  if (row == nullptr || !row->servers.Contains(own.role)) return NotServed(own, method);
  SHOAL_RETURN_IF_ERROR(CheckSameJob(own, peer));
  return CheckMayUse(peer, *row);
}

absl::Status CheckClaimedIndex(const Identity& peer, int claimed_index) {
  if (!peer.index || *peer.index == claimed_index) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(NameAndUri(peer), " may not be ",
                                                  RoleName(peer.role), " ", claimed_index,
                                                  "; its certificate is for index ", *peer.index));
}

absl::Status CheckMayCall(const Identity& own, std::string_view method) {
  const Permission* const row = Find(method);
  if (row == nullptr) {
    return absl::UnimplementedError(absl::StrCat("no daemon serves ", std::string(method)));
  }
  return CheckMayUse(own, *row);
}

absl::Status CheckServer(const Identity& own, const Identity& server, std::string_view method,
                         std::optional<int> index) {
  const Permission* const row = Find(method);
  if (row == nullptr) return NotServed(server, method);
  SHOAL_RETURN_IF_ERROR(CheckMayUse(own, *row));
  SHOAL_RETURN_IF_ERROR(CheckSameJob(own, server));
  if (!row->servers.Contains(server.role)) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the server at this address is ", NameAndUri(server), ", but only ",
        row->servers.ToString(), " serves ", std::string(method), "; check the address"));
  }
  if (index && server.index != index) {
    return absl::PermissionDeniedError(
        absl::StrCat("the server at this address is ", NameAndUri(server), ", but ",
                     RoleName(server.role), " ", *index, " is wanted; check the cluster spec"));
  }
  return absl::OkStatus();
}

}  // namespace shoal
