#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace shoal {

// A worker's word that it computes on a GPU: while one is held, no other process of this machine
// gets one of the same GPU. It ends with the process, however that ends, and leaves nothing behind.
// Containers with a network of their own do not see each other's: each is given its own GPUs.
class GpuClaim {
 public:
  // `uuid`: what names the GPU on all machines. kAlreadyExists where another holds it.
  static absl::StatusOr<std::unique_ptr<GpuClaim>> Take(const std::string& uuid);
  ~GpuClaim();
  GpuClaim(const GpuClaim&) = delete;

 private:
  explicit GpuClaim(int socket) : socket_(socket) {}

  const int socket_;
};

}  // namespace shoal
