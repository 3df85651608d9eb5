#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <thread>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/runtime/cuda_status.h"
#include "worker/compute/cuda/runtime/device_survey.h"
#include "worker/compute/cuda/runtime/nvml.h"

namespace shoal::cuda {
namespace {

DeviceInfo Describe(int index) {
  cudaDeviceProp properties;
  const absl::Status status = SHOAL_CUDA(cudaGetDeviceProperties(&properties, index));
  if (!status.ok()) return {.index = index, .error = status};
  return {.index = index,
          .name = properties.name,
          .uuid = UuidText(properties.uuid.bytes),
          .compute_capability = 10 * properties.major + properties.minor,
          .multiprocessors = properties.multiProcessorCount,
          .total_bytes = properties.totalGlobalMem};
}

// Opens the device, which takes hundreds of MiB of its memory, and closes it again.
absl::StatusOr<uint64_t> FreeBytesWhenUsed(int index) {
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaSetDevice(index)));
  size_t free_bytes = 0, total_bytes = 0;
  const absl::Status answered = SHOAL_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaDeviceReset()));
  SHOAL_RETURN_IF_ERROR(answered);
  return free_bytes;
}

absl::StatusOr<uint64_t> FreeBytesByNvml(const std::string& uuid) {
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<const Nvml> nvml, Nvml::Load());
  return nvml->FreeBytes(uuid);
}

absl::Status LookForDevices(DeviceSurvey& survey) {
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaRuntimeGetVersion(&survey.runtime_version)));
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaDriverGetVersion(&survey.driver_version)));
  if (survey.driver_version == 0) return absl::OkStatus();
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorNoDevice) return absl::OkStatus();
  SHOAL_RETURN_IF_ERROR(ToStatus(counted, "cudaGetDeviceCount"));
  for (int index = 0; index < count; ++index) survey.devices.push_back(Describe(index));
  return absl::OkStatus();
}

}  // namespace

DeviceSurvey SurveyDevices() {
  DeviceSurvey survey = {.built_with_cuda = true,
                         .min_compute_capability = SHOAL_MIN_COMPUTE_CAPABILITY};
  survey.error = LookForDevices(survey);
  return survey;
}

absl::StatusOr<uint64_t> FreeBytes(const DeviceInfo& device) {
  // NVML does not know a part of a GPU (MIG) by its UUID.
  absl::StatusOr<uint64_t> free_bytes = FreeBytesByNvml(device.uuid);
  if (free_bytes.ok()) return free_bytes;
  // The current device belongs to a thread, so a thread of its own opens the device. Setting the
  // old device again here would start using that one, too.
  std::thread([&] { free_bytes = FreeBytesWhenUsed(device.index); }).join();
  return free_bytes;
}

}  // namespace shoal::cuda
