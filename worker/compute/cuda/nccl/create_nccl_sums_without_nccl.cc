#include "common/log/logging.h"
#include "worker/compute/cuda/create_cuda_backend.h"

namespace shoal::cuda {

std::unique_ptr<GradientSums> CreateNcclSums(const std::vector<int>&) {
  LogWarning(
      "the gradients of the GPUs are added up by the host, which is slower: this program was built "
      "without NCCL");
  return nullptr;
}

}  // namespace shoal::cuda
