#include "worker/gpu_stats.h"

#include "absl/strings/str_cat.h"
#include "common/log/logging.h"

namespace shoal {

GpuStats GpuStats::Of(const std::vector<ComputeDevice>& devices) {
  std::vector<Gpu> gpus;
  absl::StatusOr<std::unique_ptr<const cuda::Nvml>> nvml = nullptr;
  for (const ComputeDevice& device : devices) {
    if (device.uuid.empty()) continue;
    if (nvml.ok() && *nvml == nullptr) nvml = cuda::Nvml::Load();
    absl::Status status = nvml.status();
    if (status.ok()) status = (*nvml)->Read(device.uuid).status();
    if (status.ok()) {
      gpus.push_back({device.name, device.uuid});
    } else {
      LogWarning(absl::StrCat("no metrics of the load of ", device.name, ": ",
                              std::string(status.message())));
    }
  }
  if (gpus.empty()) return {{}, nullptr};
  return {std::move(gpus), *std::move(nvml)};
}

void GpuStats::Collect(MetricSamples* out) const {
  for (const Gpu& gpu : gpus_) {
    const absl::StatusOr<cuda::GpuReading> reading = nvml_->Read(gpu.uuid);
    if (!reading.ok()) continue;
    const auto add = [&](MetricName metric, const auto& value) {
      if (value.has_value()) out->Add(metric, static_cast<double>(*value), {gpu.device});
    };
    add("shoal_gpu_busy_ratio", reading->busy);
    add("shoal_gpu_memory_used_bytes", reading->used_bytes);
    add("shoal_gpu_memory_bytes", reading->total_bytes);
    add("shoal_gpu_temperature_celsius", reading->celsius);
    add("shoal_gpu_power_watts", reading->watts);
  }
}

}  // namespace shoal
