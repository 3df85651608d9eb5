#include "worker/compute/cuda/runtime/device_survey.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace shoal::cuda {
namespace {

// The lowest compute capability that Shoal's kernels support.
constexpr int kMinComputeCapability = 80;

std::string CapabilityText(int capability) {
  return absl::StrCat(capability / 10, ".", capability % 10);
}

absl::Status CheckDriver(const DeviceSurvey& survey) {
  if (survey.driver_version == 0) {
    return absl::FailedPreconditionError(
        "there is no NVIDIA driver on this machine: install one and see that nvidia-smi lists the "
        "GPU (in a container, that the GPUs are passed in), or start with --device=cpu");
  }
  // Within a major version a program may run with an older driver. A driver that cannot run it
  // reports an error.
  const bool unusable = survey.devices.empty() && !survey.error.ok();
  if (survey.driver_version / 1000 < survey.runtime_version / 1000 ||
      (survey.driver_version < survey.runtime_version && unusable)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the NVIDIA driver of this machine is too old: it knows CUDA ",
                     VersionText(survey.driver_version), ", this program was built with CUDA ",
                     VersionText(survey.runtime_version),
                     "; update the driver, or build Shoal with an older CUDA"));
  }
  return survey.error;
}

absl::Status CheckCapability(const DeviceSurvey& survey, const DeviceInfo& device) {
  if (device.compute_capability >= survey.min_compute_capability) return absl::OkStatus();
  const std::string it_is =
      absl::StrCat("cuda:", device.index, " is a ", device.name, " of compute capability ",
                   CapabilityText(device.compute_capability), "; ");
  if (device.compute_capability < kMinComputeCapability) {
    return absl::FailedPreconditionError(absl::StrCat(
        it_is, "Shoal needs ", CapabilityText(kMinComputeCapability), " (Ampere) or later"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      it_is, "this program was built for ", CapabilityText(survey.min_compute_capability),
      " and later: configure it with -DCMAKE_CUDA_ARCHITECTURES=", device.compute_capability));
}

}  // namespace

std::string UuidText(std::span<const char, 16> uuid) {
  std::string text = "GPU";
  for (size_t i = 0; i < uuid.size(); ++i) {
    const bool begins_group = i == 0 || (i >= 4 && i <= 10 && i % 2 == 0);
    absl::StrAppend(&text, begins_group ? "-" : "",
                    absl::Hex(static_cast<unsigned char>(uuid[i]), absl::kZeroPad2));
  }
  return text;
}

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::StatusOr<DeviceInfo> FindDevice(const DeviceSurvey& survey, int index) {
  if (!survey.built_with_cuda) {
    return absl::UnimplementedError(
        "this program was built without CUDA: build Shoal with `cmake --preset cuda && cmake "
        "--build --preset cuda` (docs/gpu.md), or start with --device=cpu");
  }
  if (absl::Status status = CheckDriver(survey); !status.ok()) return status;
  if (survey.devices.empty()) {
    return absl::NotFoundError(
        "there is no GPU that CUDA may use on this machine: see that nvidia-smi lists one and that "
        "CUDA_VISIBLE_DEVICES does not hide it");
  }
  const int devices = static_cast<int>(survey.devices.size());
  if (index < 0 || index >= devices) {
    return absl::NotFoundError(
        absl::StrCat("there is no cuda:", index, ": this machine has ",
                     devices == 1 ? "one GPU, cuda:0"
                                  : absl::StrCat(devices, " GPUs, cuda:0 to cuda:", devices - 1)));
  }
  const DeviceInfo& device = survey.devices[index];
  if (!device.error.ok()) {
    return absl::Status(
        device.error.code(),
        absl::StrCat("cuda:", index, " cannot be used: ", device.error.message(),
                     "; see what nvidia-smi says about it, or name another with --device"));
  }
  if (absl::Status status = CheckCapability(survey, device); !status.ok()) return status;
  return device;
}

}  // namespace shoal::cuda
