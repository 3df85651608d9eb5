#include "worker/compute/cuda/create_cuda_backend.h"

#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/daemon/logging.h"
#include "worker/compute/cuda/cublaslt_library.h"
#include "worker/compute/cuda/cublaslt_products.h"
#include "worker/compute/cuda/cuda_backend.h"
#include "worker/compute/cuda/cuda_device.h"
#include "worker/compute/cuda/cudnn/convolution_timer.h"
#include "worker/compute/cuda/cudnn/cudnn_convolutions.h"
#include "worker/compute/cuda/cudnn/cudnn_library.h"
#include "worker/compute/cuda/cudnn/plan_cache.h"
#include "worker/compute/cuda/device_survey.h"
#include "worker/compute/cuda/pointwise_convolutions.h"

namespace shoal::cuda {

absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int index,
                                                           const ComputeFreedoms& freedoms) {
  SHOAL_ASSIGN_OR_RETURN(const DeviceInfo info, FindDevice(SurveyDevices(), index));
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<CudaDevice> device, CudaDevice::Create(info));
  const Stream* const stream = &device->compute_stream();
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<MatrixProducts> products,
                         CreateCublasLtProducts(stream, freedoms.tf32));
  const auto log = [](const std::string& warning) { LogWarning(warning); };
  std::unique_ptr<Convolutions> by_cudnn = CreateCudnnConvolutions(
      {.device_index = index,
       .stream = stream,
       .demands = {.tf32 = freedoms.tf32, .deterministic = !freedoms.nondeterministic},
       .plan_cache_path = PlanCachePath(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME")),
       .on_warning = log});
  ConvolutionTimer measure;
  if (freedoms.nondeterministic) {
    measure = [stream](const ConvolutionGraph& graph, int64_t workspace_bytes, Kernel& kernel) {
      return MeasureConvolution(*stream, graph, workspace_bytes,
                                [&](std::span<void* const> tensors, void* workspace) {
                                  std::vector<void*> all(tensors.begin(), tensors.end());
                                  all.push_back(workspace);
                                  return kernel.Run(nullptr, all);
                                });
    };
  }
  std::unique_ptr<Convolutions> convolutions =
      CreatePointwiseConvolutions(products.get(), std::move(by_cudnn), std::move(measure));
  const int64_t blocks = device->blocks();
  return std::make_unique<CudaBackend>(CudaBackend::Options{.device = std::move(device),
                                                            .stream = stream,
                                                            .blocks = blocks,
                                                            .products = std::move(products),
                                                            .convolutions = std::move(convolutions),
                                                            .on_warning = log});
}

absl::Status CheckLibraries() {
  SHOAL_RETURN_IF_ERROR(CublasLtLibrary::Load().status());
  return CudnnLibrary::Load().status();
}

}  // namespace shoal::cuda
