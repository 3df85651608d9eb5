#include "worker/compute/cuda/create_cuda_backend.h"

#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/daemon/logging.h"
#include "worker/compute/cuda/cublaslt_products.h"
#include "worker/compute/cuda/cuda_backend.h"
#include "worker/compute/cuda/cuda_device.h"
#include "worker/compute/cuda/cudnn/cudnn_convolutions.h"
#include "worker/compute/cuda/device_survey.h"

namespace shoal::cuda {

absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int index) {
  SHOAL_ASSIGN_OR_RETURN(const DeviceInfo info, FindDevice(SurveyDevices(), index));
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<CudaDevice> device, CudaDevice::Create(info));
  const Stream* const stream = &device->compute_stream();
  const ComputeTarget target = {.stream = stream, .blocks = device->blocks()};
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<MatrixProducts> products, CreateCublasLtProducts(stream));
  // Deterministic: a run that is gone on with gives the same bits.
  std::unique_ptr<Convolutions> convolutions = CreateCudnnConvolutions(
      {.device_index = index,
       .stream = stream,
       .demands = {.deterministic = true},
       .on_warning = [](const std::string& warning) { LogWarning(warning); }});
  return std::make_unique<CudaBackend>(std::move(device), target, std::move(products),
                                       std::move(convolutions));
}

}  // namespace shoal::cuda
