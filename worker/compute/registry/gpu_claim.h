#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace shoal {

// A worker's claim on a GPU: while one is held, no other process of this machine gets a claim on
// the same GPU. It ends with the process, even after a crash, and leaves nothing behind. Containers
// with their own network namespace do not see each other's claims: give each its own GPUs.
class GpuClaim {
 public:
  // `uuid` names the GPU across machines. kAlreadyExists if another process holds the claim.
  static absl::StatusOr<std::unique_ptr<GpuClaim>> Take(const std::string& uuid);
  ~GpuClaim();
  GpuClaim(const GpuClaim&) = delete;

 private:
  explicit GpuClaim(int socket) : socket_(socket) {}

  const int socket_;
};

}  // namespace shoal
