#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shoal {

// The role of the holder of a certificate. common/security/permissions.h says what each may do.
enum class Role { kCoordinator, kPs, kWorker, kEvaluator, kOperator, kViewer };

inline constexpr std::array kAllRoles = {Role::kCoordinator, Role::kPs,       Role::kWorker,
                                         Role::kEvaluator,   Role::kOperator, Role::kViewer};

// Returns "coordinator", "ps", "worker", "evaluator", "operator" or "viewer".
const char* RoleName(Role role);

// The limits of SPIFFE: of a whole URI, and of its trust domain.
inline constexpr size_t kMaxIdentityBytes = 2048;
inline constexpr size_t kMaxTrustDomainBytes = 255;
// The largest index of a task, as in the cluster spec.
inline constexpr int kMaxIdentityIndex = 99999;

// The holder of a certificate. The only URI of the certificate has the form of SPIFFE:
//
//   identity     = "spiffe://" trust-domain "/job/" job "/" role
//   trust-domain = 1*255( a-z / 0-9 / "." / "-" / "_" )
//   job          = 1*( A-Z / a-z / 0-9 / "." / "-" / "_" )      not "." and not ".."
//   role         = "coordinator" / "ps/" index / "worker" [ "/" index ] / "evaluator" / "operator"
//                / "viewer"
//   index        = 0 to 99999, without leading zeros
//
// The same identity always has the same text. Plain data.
struct Identity {
  std::string trust_domain;
  std::string job;
  Role role = Role::kViewer;
  // A ps always has one. A worker without one may take any free index (elastic workers). The others
  // never have one.
  std::optional<int> index;

  // Returns "spiffe://shoal/job/mnist/ps/0".
  std::string ToUri() const;
  // Returns "ps/0", as `shoal cert issue` takes it.
  std::string RoleText() const;

  bool operator==(const Identity&) const = default;
};

// Parses the text above, strictly: other letter cases, escapes (%41), ports, queries and empty
// segments are errors. Returns kInvalidArgument, which quotes the text and says what would be
// right.
absl::StatusOr<Identity> ParseIdentity(std::string_view uri);

// Return kInvalidArgument if the text cannot be that part of an identity.
absl::Status CheckTrustDomain(std::string_view trust_domain);
absl::Status CheckIdentityJob(std::string_view job);
absl::Status CheckRoleText(std::string_view role);

}  // namespace shoal
