#include "worker/gpu_figures.h"

#include "absl/strings/str_cat.h"
#include "common/daemon/logging.h"

namespace shoal {

GpuFigures GpuFigures::Of(const ComputeDevice& device) {
  if (device.uuid.empty()) return {device.name, device.uuid, nullptr};
  absl::StatusOr<std::unique_ptr<const cuda::Nvml>> nvml = cuda::Nvml::Load();
  absl::Status status = nvml.status();
  if (status.ok()) status = (*nvml)->Read(device.uuid).status();
  if (status.ok()) return {device.name, device.uuid, *std::move(nvml)};
  LogWarning(absl::StrCat("nothing is known of how busy ", device.name,
                          " is: ", std::string(status.message())));
  return {device.name, device.uuid, nullptr};
}

void GpuFigures::Collect(MetricSamples* out) const {
  if (nvml_ == nullptr) return;
  const absl::StatusOr<cuda::GpuReading> reading = nvml_->Read(uuid_);
  if (!reading.ok()) return;
  const auto add = [&](MetricName metric, const auto& value) {
    if (value.has_value()) out->Add(metric, static_cast<double>(*value), {device_});
  };
  add("shoal_gpu_busy_ratio", reading->busy);
  add("shoal_gpu_memory_used_bytes", reading->used_bytes);
  add("shoal_gpu_memory_bytes", reading->total_bytes);
  add("shoal_gpu_temperature_celsius", reading->celsius);
  add("shoal_gpu_power_watts", reading->watts);
}

}  // namespace shoal
