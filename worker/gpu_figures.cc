#include "worker/gpu_figures.h"

#include "absl/strings/str_cat.h"
#include "common/daemon/logging.h"

namespace shoal {

std::unique_ptr<const GpuFigures> GpuFigures::Of(const ComputeDevice& device) {
  if (device.uuid.empty()) return nullptr;
  absl::StatusOr<std::unique_ptr<const cuda::Nvml>> nvml = cuda::Nvml::Load();
  if (!nvml.ok()) {
    LogWarning(absl::StrCat("nothing is known of how busy ", device.name,
                            " is: ", std::string(nvml.status().message())));
    return nullptr;
  }
  return std::make_unique<GpuFigures>(device.name, device.uuid, *std::move(nvml));
}

void GpuFigures::Collect(MetricSamples* out) const {
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
