#include "common/log/logging.h"
#include "worker/compute/cuda/create_cuda_backend.h"

namespace shoal::cuda {

std::unique_ptr<GradientReducer> CreateNcclReducer(const std::vector<int>&) {
  LogWarning(
      "the host adds up the gradients of the GPUs, which is slower: this program was built without "
      "NCCL");
  return nullptr;
}

}  // namespace shoal::cuda
