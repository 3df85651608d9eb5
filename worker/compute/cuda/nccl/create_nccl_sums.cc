#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/log/logging.h"
#include "worker/compute/cuda/create_cuda_backend.h"
#include "worker/compute/cuda/nccl/nccl_library.h"
#include "worker/compute/cuda/nccl/nccl_sums.h"
#include "worker/compute/cuda/runtime/cuda_status.h"

namespace shoal::cuda {
namespace {

absl::StatusOr<std::unique_ptr<NcclSums>> Connect(const std::vector<int>& indices) {
  SHOAL_ASSIGN_OR_RETURN(std::shared_ptr<const NcclLibrary> library, NcclLibrary::Load());
  return NcclSums::Create({.library = std::move(library),
                           .devices = indices,
                           .use_device = [](int i) { return SHOAL_CUDA(cudaSetDevice(i)); }});
}

}  // namespace

std::unique_ptr<GradientReducer> CreateNcclReducer(const std::vector<int>& indices) {
  absl::StatusOr<std::unique_ptr<NcclSums>> sums = Connect(indices);
  if (sums.ok()) {
    LogInfo("the GPUs add up their gradients by NCCL");
    return *std::move(sums);
  }
  LogWarning(absl::StrCat("the host adds up the gradients of the GPUs, which is slower: ",
                          std::string(sums.status().message())));
  return nullptr;
}

}  // namespace shoal::cuda
