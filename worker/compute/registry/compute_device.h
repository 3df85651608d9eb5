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
#include "worker/compute/cuda/runtime/device_survey.h"
#include "worker/compute/registry/gpu_claim.h"

namespace shoal {

// The device that a worker computes on, or one of several.
struct ComputeDevice {
  std::string name;       // a backend as CreateBackend takes it: "cpu", "reference" or "cuda:1"
  std::string reason;     // for the log; empty if there was no choice
  std::string uuid = {};  // of a GPU; else empty
  // Keeps workers with "auto" off the GPU: hold it as long as the GPU is in use. Null for other
  // devices, and if another process holds the claim.
  std::unique_ptr<GpuClaim> claim = nullptr;
};

// Queries about this machine.
struct DeviceQuestions {
  // Lists the devices. Wakes CUDA's driver.
  std::function<cuda::DeviceSurvey()> survey;
  // The free memory of a device that this process does not use yet.
  std::function<absl::StatusOr<uint64_t>(const cuda::DeviceInfo& device)> free_bytes;
  // OK if NVIDIA's libraries are usable, else the reason why not.
  std::function<absl::Status()> check_libraries;
  // Claims a GPU by its UUID. kAlreadyExists if another process holds the claim.
  std::function<absl::StatusOr<std::unique_ptr<GpuClaim>>(const std::string& uuid)> claim =
      GpuClaim::Take;
};

// The names that ChooseDevices takes; "cuda:N" means any number.
std::vector<std::string> DeviceNames();

// Splits a name into its devices: "cuda:0,cuda:1" is two.
std::vector<std::string> DevicesIn(const std::string& name);
// Joins the names of `devices`: the inverse of DevicesIn.
std::string NameOf(const std::vector<ComputeDevice>& devices);

// Rejects a name with kInvalidArgument and the nearest valid name. Several devices must be of one
// kind, because the parts of a batch have one size. No GPU may occur twice.
struct DeviceNameRules {
  bool automatic = true;  // allows "auto"
  bool several = true;    // allows several devices
};
absl::Status CheckDeviceName(const std::string& name, const DeviceNameRules& rules = {});
// Checks that the GPUs that `name` lists are on this machine, for a caller that does not compute on
// them. Errors: CheckDeviceName's or FindDevice's. Calls `survey` only if `name` lists a GPU.
absl::Status CheckDevicesAreHere(const std::string& name,
                                 const std::function<cuda::DeviceSurvey()>& survey);

// Returns N for "cuda:N", and nothing for other names.
std::optional<int> CudaIndexOf(std::string_view name);

// Returns the devices that `asked` names. For "auto" it returns the usable, unclaimed GPU with the
// most free memory. It returns the cpu instead if there is no such GPU or a library is missing.
// Errors: CheckDeviceName's, and for a GPU FindDevice's. Skips queries about GPUs whose answers
// cannot change the result.
absl::StatusOr<std::vector<ComputeDevice>> ChooseDevices(const std::string& asked,
                                                         const DeviceQuestions& questions);

}  // namespace shoal
