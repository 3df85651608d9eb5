#include "worker/compute/cuda/create_cuda_backend.h"
#include "worker/compute/cuda/runtime/device_survey.h"

namespace shoal::cuda {

absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int index, const NumericsOptions&) {
  return FindDevice(SurveyDevices(), index).status();
}

std::unique_ptr<GradientReducer> CreateNcclReducer(const std::vector<int>&) { return nullptr; }

absl::Status CheckLibraries() { return FindDevice(SurveyDevices(), 0).status(); }

}  // namespace shoal::cuda
