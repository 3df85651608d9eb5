#include "common/security/permissions.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/rpc/methods.h"

namespace shoal {
namespace {

constexpr RoleSet kCoordinatorOnly = {Role::kCoordinator};
constexpr RoleSet kPsOnly = {Role::kPs};
constexpr RoleSet kWorkerOnly = {Role::kWorker};
constexpr RoleSet kEvaluatorOnly = {Role::kEvaluator};
constexpr RoleSet kOperatorOnly = {Role::kOperator};
constexpr RoleSet kWhoWatches = {Role::kOperator, Role::kViewer};
constexpr RoleSet kEveryDaemon = {Role::kCoordinator, Role::kPs, Role::kWorker, Role::kEvaluator};

// The one place that says who may do what. docs/security.md shows it to people.
constexpr Permission kPermissions[] = {
    {PeerRequest::kWorkerHello, kWorkMethod, "hello", kCoordinatorOnly, kWorkerOnly},
    {PeerRequest::kWorkerReady, kWorkMethod, "ready", kCoordinatorOnly, kWorkerOnly},
    {PeerRequest::kStepsDone, kWorkMethod, "steps_done", kCoordinatorOnly, kWorkerOnly},
    {PeerRequest::kEvaluationDone, kWorkMethod, "evaluation_done", kCoordinatorOnly, kWorkerOnly},
    {PeerRequest::kLeaving, kWorkMethod, "leaving", kCoordinatorOnly, kWorkerOnly},
    {PeerRequest::kTimelineLost, kWorkMethod, "timeline_lost", kCoordinatorOnly, kWorkerOnly},
    {PeerRequest::kDraining, kWorkMethod, "draining", kCoordinatorOnly, kWorkerOnly},
    {PeerRequest::kWaiting, kWorkMethod, "waiting", kCoordinatorOnly, kWorkerOnly},
    {PeerRequest::kHalted, kWorkMethod, "halted", kCoordinatorOnly, kWorkerOnly},

    {PeerRequest::kEvaluatorHello, kEvaluateMethod, "hello", kCoordinatorOnly, kEvaluatorOnly},
    {PeerRequest::kEvaluatorReady, kEvaluateMethod, "ready", kCoordinatorOnly, kEvaluatorOnly},
    {PeerRequest::kValuesWanted, kEvaluateMethod, "values_wanted", kCoordinatorOnly,
     kEvaluatorOnly},
    {PeerRequest::kEvaluationProgress, kEvaluateMethod, "progress", kCoordinatorOnly,
     kEvaluatorOnly},
    {PeerRequest::kCheckpointEvaluated, kEvaluateMethod, "evaluated", kCoordinatorOnly,
     kEvaluatorOnly},
    {PeerRequest::kEvaluatorLeaving, kEvaluateMethod, "leaving", kCoordinatorOnly, kEvaluatorOnly},

    {PeerRequest::kExchangeHello, kExchangeMethod, "hello", kPsOnly, kWorkerOnly},
    {PeerRequest::kPush, kExchangeMethod, "push", kPsOnly, kWorkerOnly},
    {PeerRequest::kPull, kExchangeMethod, "pull", kPsOnly, kWorkerOnly},

    {PeerRequest::kClaim, kControlMethod, "claim", kPsOnly, kCoordinatorOnly},
    {PeerRequest::kLoad, kControlMethod, "load", kPsOnly, kCoordinatorOnly},
    {PeerRequest::kFence, kControlMethod, "fence", kPsOnly, kCoordinatorOnly},
    {PeerRequest::kRelease, kControlMethod, "release", kPsOnly, kCoordinatorOnly},
    {PeerRequest::kStop, kControlMethod, "stop", kPsOnly, kCoordinatorOnly},
    {PeerRequest::kReadCut, kControlMethod, "read_cut", kPsOnly, kCoordinatorOnly},
    {PeerRequest::kRows, kControlMethod, "rows", kPsOnly, kCoordinatorOnly},
    {PeerRequest::kResign, kControlMethod, "resign", kPsOnly, kCoordinatorOnly},

    {PeerRequest::kStatus, kStatusMethod, "", kCoordinatorOnly, kWhoWatches},
    {PeerRequest::kDrain, kDrainMethod, "", kCoordinatorOnly, kOperatorOnly},
    {PeerRequest::kCheckpoint, kCheckpointMethod, "", kCoordinatorOnly, kOperatorOnly},

    {PeerRequest::kMetrics, kMetricsPath, "", kEveryDaemon, kWhoWatches},
};

// PermissionOf() takes a request for the number of its row.
constexpr bool InOrderOfRequests() {
  int row = 0;
  for (const Permission& permission : kPermissions) {
    if (static_cast<int>(permission.request) != row++) return false;
  }
  return true;
}
static_assert(InOrderOfRequests());

// Daemons check a method when a stream opens, and no single request after that.
constexpr bool RowsOfAMethodAgree() {
  for (const Permission& a : kPermissions) {
    for (const Permission& b : kPermissions) {
      if (a.method == b.method && !(a.servers == b.servers && a.clients == b.clients)) return false;
    }
  }
  return true;
}
static_assert(RowsOfAMethodAgree());

std::string NameAndUri(const Identity& identity) {
  return absl::StrCat(identity.RoleText(), " (", identity.ToUri(), ")");
}

// "send "claim" on /shoal.proto.ParameterServer/Control".
std::string RequestText(const Permission& permission) {
  if (permission.message.empty()) return "use " + std::string(permission.method);
  return absl::StrCat("send \"", std::string(permission.message), "\" on ",
                      std::string(permission.method));
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

// Returns the rows of a method, which the table has next to each other.
std::span<const Permission> RowsOf(std::string_view method) {
  const std::span<const Permission> all(kPermissions);
  const auto is_of_method = [&](const Permission& row) { return row.method == method; };
  const auto first = std::find_if(all.begin(), all.end(), is_of_method);
  const auto end = std::find_if_not(first, all.end(), is_of_method);
  return all.subspan(static_cast<size_t>(first - all.begin()), static_cast<size_t>(end - first));
}

absl::Status Denied(const Identity& peer, const std::string& request, const RoleSet& clients) {
  return absl::PermissionDeniedError(absl::StrCat(NameAndUri(peer), " may not ", request,
                                                  "; it needs a certificate with the role ",
                                                  clients.ToString()));
}

// Returns OK if the client's role may use the method.
absl::Status CheckMayUse(const Identity& client, std::span<const Permission> rows) {
  if (rows.front().clients.Contains(client.role)) return absl::OkStatus();
  return Denied(client, "use " + std::string(rows.front().method), rows.front().clients);
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

const Permission& PermissionOf(PeerRequest request) {
  return kPermissions[static_cast<size_t>(request)];
}

absl::Status CheckMethodPermitted(const Identity& own, const Identity& peer,
                                  std::string_view method) {
  const std::span<const Permission> rows = RowsOf(method);
  if (rows.empty() || !rows.front().servers.Contains(own.role)) return NotServed(own, method);
  SHOAL_RETURN_IF_ERROR(CheckSameJob(own, peer));
  return CheckMayUse(peer, rows);
}

absl::Status CheckPermitted(const Identity& own, const Identity& peer, PeerRequest request) {
  const Permission& row = PermissionOf(request);
  if (!row.servers.Contains(own.role)) return NotServed(own, row.method);
  SHOAL_RETURN_IF_ERROR(CheckSameJob(own, peer));
  if (row.clients.Contains(peer.role)) return absl::OkStatus();
  return Denied(peer, RequestText(row), row.clients);
}

absl::Status CheckClaimedIndex(const Identity& peer, int claimed_index) {
  if (!peer.index || *peer.index == claimed_index) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(NameAndUri(peer), " may not be ",
                                                  RoleName(peer.role), " ", claimed_index,
                                                  "; its certificate is for index ", *peer.index));
}

absl::Status CheckMayCall(const Identity& own, std::string_view method) {
  const std::span<const Permission> rows = RowsOf(method);
  if (rows.empty()) {
    return absl::UnimplementedError(absl::StrCat("no daemon serves ", std::string(method)));
  }
  return CheckMayUse(own, rows);
}

absl::Status CheckServer(const Identity& own, const Identity& server, std::string_view method,
                         std::optional<int> index) {
  const std::span<const Permission> rows = RowsOf(method);
  if (rows.empty()) return NotServed(server, method);
  SHOAL_RETURN_IF_ERROR(CheckMayUse(own, rows));
  SHOAL_RETURN_IF_ERROR(CheckSameJob(own, server));
  if (!rows.front().servers.Contains(server.role)) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the server at this address is ", NameAndUri(server), ", but only ",
        rows.front().servers.ToString(), " serves ", std::string(method), "; check the address"));
  }
  if (index && server.index != index) {
    return absl::PermissionDeniedError(
        absl::StrCat("the server at this address is ", NameAndUri(server), ", but ",
                     RoleName(server.role), " ", *index, " is wanted; check the cluster spec"));
  }
  return absl::OkStatus();
}

}  // namespace shoal
