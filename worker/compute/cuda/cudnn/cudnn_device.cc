#include "worker/compute/cuda/cudnn/cudnn_device.h"

#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal::cuda {
namespace {

absl::StatusOr<std::string> NameOf(const std::string& properties) {
  const auto json = nlohmann::json::parse(properties, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("deviceName") && json["deviceName"].is_string() &&
      json.contains("deviceVer") && json["deviceVer"].is_number_integer() &&
      json.contains("multiProcessorCount") && json["multiProcessorCount"].is_number_integer()) {
    const int version = json["deviceVer"].get<int>();  // 900 means 9.0
    std::string name = json["deviceName"].get<std::string>();
    for (char& c : name) {
      if (c == '\t' || c == '\n') c = ' ';
    }
    return absl::StrCat(name, " ", version / 100, ".", version % 100 / 10, " ",
                        json["multiProcessorCount"].get<int>());
  }
  return absl::InternalError(
      absl::StrCat("cuDNN describes the GPU in an unknown form: ", properties));
}

}  // namespace

absl::StatusOr<CudnnDevice> CudnnDevice::OfThisMachine(const CudnnLibrary& library, int index) {
  SHOAL_ASSIGN_OR_RETURN(Descriptor properties,
                         Descriptor::Create(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, {}));
  SHOAL_RETURN_IF_ERROR(properties.Set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, int32_t{index}));
  return Finish(std::move(properties));
}

absl::StatusOr<CudnnDevice> CudnnDevice::Described(const CudnnLibrary& library,
                                                   std::string_view json) {
  SHOAL_ASSIGN_OR_RETURN(Descriptor properties,
                         Descriptor::Create(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, {}));
  SHOAL_RETURN_IF_ERROR(properties.Set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                       std::span<const char>(json.data(), json.size())));
  return Finish(std::move(properties));
}

absl::StatusOr<CudnnDevice> CudnnDevice::Finish(Descriptor properties) {
  SHOAL_RETURN_IF_ERROR(properties.Finalize());
  SHOAL_ASSIGN_OR_RETURN(const std::vector<char> json,
                         properties.Get<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION));
  // The text may end like a C string.
  std::string text(json.begin(), json.end());
  text.resize(std::min(text.size(), text.find('\0')));
  SHOAL_ASSIGN_OR_RETURN(std::string name, NameOf(text));
  return CudnnDevice(std::move(properties), std::move(name));
}

}  // namespace shoal::cuda
