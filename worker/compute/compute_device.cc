#include "worker/compute/compute_device.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "worker/compute/backends.h"

namespace shoal {
namespace {

constexpr std::string_view kCudaPrefix = "cuda:";

ComputeDevice TheCpu(const std::string& why) {
  return {.name = "cpu", .reason = absl::StrCat("computes on the cpu: ", why)};
}

std::string NameOf(const cuda::DeviceInfo& device) {
  return absl::StrCat(std::string(kCudaPrefix), device.index);
}

// Those of `survey` that can be used, the one with the most free memory first.
std::vector<cuda::DeviceInfo> UsableDevices(const cuda::DeviceSurvey& survey,
                                            const DeviceQuestions& questions) {
  std::vector<cuda::DeviceInfo> usable;
  for (const cuda::DeviceInfo& device : survey.devices) {
    if (cuda::FindDevice(survey, device.index).ok()) usable.push_back(device);
  }
  if (usable.size() < 2) return usable;
  std::map<int, uint64_t> free;
  for (const cuda::DeviceInfo& device : usable) {
    free[device.index] = questions.free_bytes(device.index).value_or(0);
  }
  std::stable_sort(usable.begin(), usable.end(),
                   [&](const cuda::DeviceInfo& one, const cuda::DeviceInfo& other) {
                     return free[one.index] > free[other.index];
                   });
  return usable;
}

ComputeDevice ChooseFor(const DeviceQuestions& questions) {
  const cuda::DeviceSurvey survey = questions.survey();
  // A program that has no CUDA is not to excuse itself.
  if (!survey.built_with_cuda) return {.name = "cpu", .reason = ""};
  const std::vector<cuda::DeviceInfo> usable = UsableDevices(survey, questions);
  if (usable.empty()) return TheCpu(std::string(cuda::FindDevice(survey, 0).status().message()));
  const absl::Status libraries = questions.check_libraries();
  if (!libraries.ok()) return TheCpu(std::string(libraries.message()));
  std::vector<std::string> names;
  for (const cuda::DeviceInfo& device : usable) {
    const std::string name = names.emplace_back(NameOf(device));
    absl::StatusOr<std::unique_ptr<GpuClaim>> claim = questions.claim(device.uuid);
    if (absl::IsAlreadyExists(claim.status())) continue;
    ComputeDevice chosen = {.name = name,
                            .reason = absl::StrCat("computes on ", name, ", ", device.name),
                            .uuid = device.uuid};
    if (claim.ok()) {
      chosen.claim = *std::move(claim);
    } else {
      absl::StrAppend(&chosen.reason, "; other workers are not kept off it: ",
                      std::string(claim.status().message()));
    }
    return chosen;
  }
  std::sort(names.begin(), names.end());
  return TheCpu(absl::StrCat("other workers of this machine compute on ",
                             absl::StrJoin(names, ", "), "; to share one, ask for it by its name"));
}

ComputeDevice TheGpu(const std::string& name, const cuda::DeviceInfo& device,
                     const DeviceQuestions& questions) {
  ComputeDevice asked_for = {.name = name, .reason = "", .uuid = device.uuid};
  absl::StatusOr<std::unique_ptr<GpuClaim>> claim = questions.claim(device.uuid);
  if (claim.ok()) {
    asked_for.claim = *std::move(claim);
  } else if (absl::IsAlreadyExists(claim.status())) {
    asked_for.reason = absl::StrCat("shares ", name, " with another worker of this machine");
  }
  return asked_for;
}

}  // namespace

std::vector<std::string> DeviceNames() {
  std::vector<std::string> names = BackendNames();
  names.insert(names.begin(), "auto");
  names.push_back(absl::StrCat(std::string(kCudaPrefix), "N"));
  return names;
}

std::optional<int> CudaIndexOf(std::string_view name) {
  int index = 0;
  if (!name.starts_with(kCudaPrefix)) return std::nullopt;
  const std::string number(name.substr(kCudaPrefix.size()));
  const bool digits = std::all_of(number.begin(), number.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(number, &index)) return std::nullopt;
  return index;
}

absl::Status CheckDeviceName(const std::string& name, bool automatic) {
  const std::vector<std::string> backends = BackendNames();
  if ((automatic && name == "auto") || CudaIndexOf(name).has_value() ||
      std::find(backends.begin(), backends.end(), name) != backends.end())
    return absl::OkStatus();
  std::vector<std::string> names = DeviceNames();
  if (!automatic) std::erase(names, "auto");
  std::string nearest = NearestName(name, names);
  if (name == "gpu" || name.starts_with("cuda")) nearest = "cuda:0";
  return absl::InvalidArgumentError(
      absl::StrCat("device \"", name, "\" is not known; there are ", absl::StrJoin(names, ", "),
                   nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

absl::StatusOr<ComputeDevice> ChooseDevice(const std::string& asked,
                                           const DeviceQuestions& questions) {
  SHOAL_RETURN_IF_ERROR(CheckDeviceName(asked));
  if (asked == "auto") return ChooseFor(questions);
  const std::optional<int> index = CudaIndexOf(asked);
  if (!index.has_value()) return ComputeDevice{.name = asked, .reason = ""};
  SHOAL_ASSIGN_OR_RETURN(const cuda::DeviceInfo device,
                         cuda::FindDevice(questions.survey(), *index));
  return TheGpu(asked, device, questions);
}

}  // namespace shoal
