#include "worker/compute/registry/compute_device.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/text/nearest_name.h"
#include "worker/compute/registry/backends.h"

namespace shoal {
namespace {

constexpr std::string_view kCudaPrefix = "cuda:";

ComputeDevice TheCpu(const std::string& why) {
  return {.name = "cpu", .reason = absl::StrCat("computes on the cpu: ", why)};
}

std::string NameOf(const cuda::DeviceInfo& device) {
  return absl::StrCat(std::string(kCudaPrefix), device.index);
}

// The usable devices of `survey`, the one with the most free memory first.
std::vector<cuda::DeviceInfo> UsableDevices(const cuda::DeviceSurvey& survey,
                                            const DeviceQuestions& questions) {
  std::vector<cuda::DeviceInfo> usable;
  for (const cuda::DeviceInfo& device : survey.devices) {
    if (cuda::FindDevice(survey, device.index).ok()) usable.push_back(device);
  }
  if (usable.size() < 2) return usable;
  std::map<int, uint64_t> free;
  for (const cuda::DeviceInfo& device : usable) {
    free[device.index] = questions.free_bytes(device).value_or(0);
  }
  std::stable_sort(usable.begin(), usable.end(),
                   [&](const cuda::DeviceInfo& one, const cuda::DeviceInfo& other) {
                     return free[one.index] > free[other.index];
                   });
  return usable;
}

ComputeDevice ChooseFor(const DeviceQuestions& questions) {
  const cuda::DeviceSurvey survey = questions.survey();
  // A program built without CUDA gives no reason for its choice.
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
      absl::StrAppend(&chosen.reason, "; other workers may choose it, too: ",
                      std::string(claim.status().message()));
    }
    return chosen;
  }
  std::sort(names.begin(), names.end());
  return TheCpu(absl::StrCat("other workers of this machine compute on ",
                             absl::StrJoin(names, ", "),
                             "; to share one, start with --device=", names[0]));
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

// Checks a list of several devices. `name` is the list as the user wrote it.
absl::Status CheckSeveral(const std::string& name, const std::vector<std::string>& devices) {
  if (std::find(devices.begin(), devices.end(), "") != devices.end()) {
    std::vector<std::string> named = devices;
    std::erase(named, "");
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", name, "\" has no device on one side of a comma",
        named.empty() ? "" : absl::StrCat("; did you mean \"", absl::StrJoin(named, ","), "\"?")));
  }
  std::set<std::string> kinds;
  std::set<int> gpus;
  for (const std::string& device : devices) {
    if (device == "auto") {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", name,
                       "\": auto is one device, which a worker chooses for itself; name each of "
                       "several, as in \"cuda:0,cuda:1\""));
    }
    SHOAL_RETURN_IF_ERROR(CheckDeviceName(device, {.automatic = false}));
    const std::optional<int> index = CudaIndexOf(device);
    if (index.has_value() && !gpus.insert(*index).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", name, "\" names ", device, " twice: a GPU computes one part of each batch"));
    }
    kinds.insert(index.has_value() ? "cuda" : device);
  }
  if (kinds.size() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name,
      "\": the devices of one worker must be of one kind, because each computes an equal part "
      "of each batch and waits for the others; start a worker for each kind"));
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

std::vector<std::string> DevicesIn(const std::string& name) { return absl::StrSplit(name, ','); }

std::string NameOf(const std::vector<ComputeDevice>& devices) {
  return absl::StrJoin(devices, ",", [](std::string* out, const ComputeDevice& device) {
    absl::StrAppend(out, device.name);
  });
}

absl::Status CheckDeviceName(const std::string& name, const DeviceNameRules& rules) {
  const std::vector<std::string> several = DevicesIn(name);
  if (several.size() > 1) {
    if (rules.several) return CheckSeveral(name, several);
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" names several devices; expected one"));
  }
  const std::vector<std::string> backends = BackendNames();
  if ((rules.automatic && name == "auto") || CudaIndexOf(name).has_value() ||
      std::find(backends.begin(), backends.end(), name) != backends.end())
    return absl::OkStatus();
  std::vector<std::string> names = DeviceNames();
  if (!rules.automatic) std::erase(names, "auto");
  std::string nearest = NearestName(name, names);
  if (name == "gpu" || name.starts_with("cuda")) nearest = "cuda:0";
  return absl::InvalidArgumentError(
      absl::StrCat("device \"", name, "\" is not known; there are ", absl::StrJoin(names, ", "),
                   nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

absl::Status CheckDevicesAreHere(const std::string& name,
                                 const std::function<cuda::DeviceSurvey()>& survey) {
  SHOAL_RETURN_IF_ERROR(CheckDeviceName(name));
  std::optional<cuda::DeviceSurvey> found;
  for (const std::string& device : DevicesIn(name)) {
    const std::optional<int> index = CudaIndexOf(device);
    if (!index.has_value()) continue;
    if (!found.has_value()) found = survey();
    SHOAL_RETURN_IF_ERROR(cuda::FindDevice(*found, *index).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ComputeDevice>> ChooseDevices(const std::string& asked,
                                                         const DeviceQuestions& questions) {
  SHOAL_RETURN_IF_ERROR(CheckDeviceName(asked));
  std::vector<ComputeDevice> chosen;
  if (asked == "auto") {
    chosen.push_back(ChooseFor(questions));
    return chosen;
  }
  std::optional<cuda::DeviceSurvey> survey;
  for (const std::string& name : DevicesIn(asked)) {
    const std::optional<int> index = CudaIndexOf(name);
    if (!index.has_value()) {
      chosen.push_back({.name = name, .reason = ""});
      continue;
    }
    if (!survey.has_value()) survey = questions.survey();
    SHOAL_ASSIGN_OR_RETURN(const cuda::DeviceInfo device, cuda::FindDevice(*survey, *index));
    chosen.push_back(TheGpu(name, device, questions));
  }
  return chosen;
}

}  // namespace shoal
