#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/device_survey.h"

namespace shoal {

// What a worker computes on.
struct ComputeDevice {
  std::string name;    // "cpu", "reference" or "cuda:1": a backend, as CreateBackend knows it
  std::string reason;  // for the log; empty where there was nothing to choose
};

// The names that ChooseDevice takes, "cuda:N" standing for any number.
std::vector<std::string> DeviceNames();

// N of "cuda:N", and nothing of other names.
std::optional<int> CudaIndexOf(std::string_view name);

// What `asked` stands for: itself, or in place of "auto" the GPU with the most free memory of those
// that can be used and, where none can, the cpu. Errors: kInvalidArgument for another name, and for
// a GPU FindDevice's. `survey` is made only for "auto" and GPUs, as it wakes CUDA's driver,
// `free_bytes` asked only where there are several to choose from.
absl::StatusOr<ComputeDevice> ChooseDevice(
    const std::string& asked, const std::function<cuda::DeviceSurvey()>& survey,
    const std::function<absl::StatusOr<uint64_t>(int index)>& free_bytes);

}  // namespace shoal
