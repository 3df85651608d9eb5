#include <cuda_runtime_api.h>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/device_survey.h"

namespace shoal::cuda {
namespace {

absl::StatusOr<DeviceInfo> Describe(int index) {
  cudaDeviceProp properties;
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaGetDeviceProperties(&properties, index)));
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaSetDevice(index)));
  size_t free_bytes = 0, total_bytes = 0;
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes)));
  return DeviceInfo{.index = index,
                    .name = properties.name,
                    .compute_capability = 10 * properties.major + properties.minor,
                    .free_bytes = free_bytes,
                    .total_bytes = total_bytes};
}

absl::Status LookForDevices(DeviceSurvey& survey) {
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaRuntimeGetVersion(&survey.runtime_version)));
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaDriverGetVersion(&survey.driver_version)));
  if (survey.driver_version == 0) return absl::OkStatus();
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorNoDevice) return absl::OkStatus();
  SHOAL_RETURN_IF_ERROR(ToStatus(counted, "cudaGetDeviceCount"));
  for (int index = 0; index < count; ++index) {
    SHOAL_ASSIGN_OR_RETURN(DeviceInfo device, Describe(index));
    survey.devices.push_back(std::move(device));
  }
  return absl::OkStatus();
}

}  // namespace

DeviceSurvey SurveyDevices() {
  DeviceSurvey survey = {.built_with_cuda = true,
                         .least_compute_capability = SHOAL_LEAST_COMPUTE_CAPABILITY};
  survey.error = LookForDevices(survey);
  return survey;
}

}  // namespace shoal::cuda
