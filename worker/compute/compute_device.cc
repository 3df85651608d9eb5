#include "worker/compute/compute_device.h"

#include <algorithm>
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

ComputeDevice ChooseFor(const cuda::DeviceSurvey& survey,
                        const std::function<absl::StatusOr<uint64_t>(int index)>& free_bytes) {
  std::vector<cuda::DeviceInfo> usable;
  for (const cuda::DeviceInfo& device : survey.devices) {
    if (cuda::FindDevice(survey, device.index).ok()) usable.push_back(device);
  }
  if (usable.empty()) {
    // A program that has no CUDA is not to excuse itself.
    const absl::Status missing = cuda::FindDevice(survey, 0).status();
    return {.name = "cpu",
            .reason = survey.built_with_cuda
                          ? absl::StrCat("computes on the cpu: ", std::string(missing.message()))
                          : ""};
  }
  std::vector<uint64_t> free(usable.size());
  for (size_t i = 0; usable.size() > 1 && i < usable.size(); ++i) {
    free[i] = free_bytes(usable[i].index).value_or(0);
  }
  const auto most = std::max_element(free.begin(), free.end()) - free.begin();
  const std::string name = absl::StrCat(std::string(kCudaPrefix), usable[most].index);
  return {.name = name, .reason = absl::StrCat("computes on ", name, ", ", usable[most].name)};
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

absl::StatusOr<ComputeDevice> ChooseDevice(
    const std::string& asked, const std::function<cuda::DeviceSurvey()>& survey,
    const std::function<absl::StatusOr<uint64_t>(int index)>& free_bytes) {
  if (asked == "auto") return ChooseFor(survey(), free_bytes);
  const std::vector<std::string> backends = BackendNames();
  if (std::count(backends.begin(), backends.end(), asked) > 0) {
    return ComputeDevice{.name = asked, .reason = ""};
  }
  if (const std::optional<int> index = CudaIndexOf(asked); index.has_value()) {
    SHOAL_RETURN_IF_ERROR(cuda::FindDevice(survey(), *index).status());
    return ComputeDevice{.name = asked, .reason = ""};
  }
  const std::string nearest = asked == "cuda" ? "cuda:0" : NearestName(asked, DeviceNames());
  return absl::InvalidArgumentError(absl::StrCat(
      "device \"", asked, "\" is not known; there are ", absl::StrJoin(DeviceNames(), ", "),
      nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

}  // namespace shoal
