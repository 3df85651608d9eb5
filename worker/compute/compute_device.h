#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/cuda/device_survey.h"
#include "worker/compute/gpu_claim.h"

namespace shoal {

// What a worker computes on, or one of several.
struct ComputeDevice {
  std::string name;       // "cpu", "reference" or "cuda:1": a backend, as CreateBackend knows it
  std::string reason;     // for the log; empty where there was nothing to choose
  std::string uuid = {};  // of a GPU
  // Keeps workers that choose for themselves off the GPU: to be held as long as it is used. Null of
  // others, and where somebody else holds it.
  std::unique_ptr<GpuClaim> claim = nullptr;
};

// What is asked about this machine.
struct DeviceQuestions {
  // Wakes CUDA's driver.
  std::function<cuda::DeviceSurvey()> survey;
  // Of a device that nothing in this process uses yet.
  std::function<absl::StatusOr<uint64_t>(const cuda::DeviceInfo& device)> free_bytes;
  // Why NVIDIA's libraries cannot be used; OK where they can.
  std::function<absl::Status()> check_libraries;
  // By UUID; kAlreadyExists where another process has it.
  std::function<absl::StatusOr<std::unique_ptr<GpuClaim>>(const std::string& uuid)> claim =
      GpuClaim::Take;
};

// The names that ChooseDevices takes, "cuda:N" standing for any number.
std::vector<std::string> DeviceNames();

// The devices that a name stands for: "cuda:0,cuda:1" is two.
std::vector<std::string> DevicesIn(const std::string& name);
// The other way round.
std::string NameOf(const std::vector<ComputeDevice>& devices);

// kInvalidArgument for a name that it does not take, with the nearest one. Several devices are of
// one kind, since the parts of a batch are of one size, and no GPU is named twice.
struct DeviceNameRules {
  bool automatic = true;  // "auto" is a name
  bool several = true;    // several devices are
};
absl::Status CheckDeviceName(const std::string& name, const DeviceNameRules& rules = {});
// Whether the GPUs that a name stands for are here, for who does not compute on them itself: an
// error is CheckDeviceName's or FindDevice's. `survey` is asked only where a GPU is named.
absl::Status CheckDevicesAreHere(const std::string& name,
                                 const std::function<cuda::DeviceSurvey()>& survey);

// N of "cuda:N", and nothing of other names.
std::optional<int> CudaIndexOf(std::string_view name);

// What `asked` stands for: the devices that it names, or in place of "auto" the GPU with the most
// free memory of those that can be used and that no other worker has claimed and, where there is
// none, or a library is missing, the cpu. Errors: CheckDeviceName's, and for a GPU FindDevice's.
// Nothing is asked about GPUs that another answer would not change.
absl::StatusOr<std::vector<ComputeDevice>> ChooseDevices(const std::string& asked,
                                                         const DeviceQuestions& questions);

}  // namespace shoal
