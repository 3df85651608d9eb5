#include "worker/compute/cuda/runtime/nvml.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/cuda/runtime/shared_library.h"

namespace shoal::cuda {

absl::StatusOr<std::unique_ptr<const Nvml>> Nvml::LoadFrom(const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(SharedLibrary shared, SharedLibrary::Open(path));
  auto library = std::unique_ptr<Nvml>(new Nvml);
  shared.Find("nvmlInit_v2", &library->init_);
  shared.Find("nvmlErrorString", &library->error_string_);
  shared.Find("nvmlDeviceGetHandleByUUID", &library->find_);
  shared.Find("nvmlDeviceGetUtilizationRates", &library->utilization_);
  shared.Find("nvmlDeviceGetMemoryInfo", &library->memory_);
  shared.Find("nvmlDeviceGetTemperature", &library->temperature_);
  shared.Find("nvmlDeviceGetPowerUsage", &library->power_);
  SHOAL_RETURN_IF_ERROR(shared.found());
  // Stays initialised, because the library stays loaded.
  if (const Return status = library->init_(); status != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": nvmlInit: ", library->error_string_(status)));
  }
  return library;
}

absl::StatusOr<GpuReading> Nvml::Read(const std::string& uuid) const {
  Device device = nullptr;
  if (const Return status = find_(uuid.c_str(), &device); status != 0) {
    return absl::NotFoundError(
        absl::StrCat("nvmlDeviceGetHandleByUUID ", uuid, ": ", error_string_(status)));
  }
  GpuReading reading;
  if (Utilization utilization = {}; utilization_(device, &utilization) == 0)
    reading.busy = utilization.gpu / 100.0;
  if (Memory memory = {}; memory_(device, &memory) == 0) {
    reading.used_bytes = memory.used;
    reading.total_bytes = memory.total;
  }
  unsigned number = 0;
  if (temperature_(device, kGpuSensor, &number) == 0) reading.celsius = number;
  if (power_(device, &number) == 0) reading.watts = number / 1000.0;
  return reading;
}

absl::StatusOr<uint64_t> Nvml::FreeBytes(const std::string& uuid) const {
  SHOAL_ASSIGN_OR_RETURN(const GpuReading reading, Read(uuid));
  if (!reading.total_bytes.has_value() || !reading.used_bytes.has_value()) {
    return absl::UnimplementedError(
        absl::StrCat("the driver does not say how much memory of ", uuid, " is free"));
  }
  return *reading.total_bytes - *reading.used_bytes;
}

}  // namespace shoal::cuda
