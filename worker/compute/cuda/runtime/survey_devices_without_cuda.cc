#include "worker/compute/cuda/runtime/device_survey.h"

namespace shoal::cuda {

DeviceSurvey SurveyDevices() { return {.built_with_cuda = false}; }

absl::StatusOr<uint64_t> FreeBytes(const DeviceInfo& device) {
  return FindDevice({}, device.index).status();
}

}  // namespace shoal::cuda
