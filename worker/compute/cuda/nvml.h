#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace shoal::cuda {

// What the driver says of a GPU; what it does not say of this one is not there.
struct GpuReading {
  std::optional<double> busy;  // share of the last second or so in which kernels ran
  std::optional<uint64_t> used_bytes;
  std::optional<uint64_t> total_bytes;
  std::optional<double> celsius;
  std::optional<double> watts;
};

// NVIDIA's management library, which comes with the driver, loaded when it is asked for. Its C
// interface is declared here, as it is the same in all versions and a build without CUDA has it,
// too. Thread-safe, as the library is.
class Nvml {
 public:
  // kFailedPrecondition where there is none, or it cannot reach the driver.
  static absl::StatusOr<std::unique_ptr<const Nvml>> Load() {
    return LoadFrom("libnvidia-ml.so.1");
  }
  static absl::StatusOr<std::unique_ptr<const Nvml>> LoadFrom(const std::string& path);

  // Of the GPU with this UUID, as CUDA tells it; takes some milliseconds. kNotFound, with what the
  // library says, where it knows none.
  absl::StatusOr<GpuReading> Read(const std::string& uuid) const;
  // How much of its memory nobody has taken. Errors are Read's, and kUnimplemented where the driver
  // does not say.
  absl::StatusOr<uint64_t> FreeBytes(const std::string& uuid) const;

 private:
  // As nvml.h has them: nvmlReturn_t, of which 0 is success, nvmlDevice_t, and two structs.
  using Return = int;
  using Device = void*;
  struct Utilization {
    unsigned gpu, memory;  // percent of the time
  };
  struct Memory {
    unsigned long long total, free, used;  // NOLINT(google-runtime-int): bytes, as there
  };
  static constexpr int kGpuSensor = 0;

  Nvml() = default;

  Return (*init_)() = nullptr;
  const char* (*error_string_)(Return) = nullptr;
  Return (*find_)(const char* uuid, Device* device) = nullptr;
  Return (*utilization_)(Device, Utilization*) = nullptr;
  Return (*memory_)(Device, Memory*) = nullptr;
  Return (*temperature_)(Device, int sensor, unsigned* celsius) = nullptr;
  Return (*power_)(Device, unsigned* milliwatts) = nullptr;
};

}  // namespace shoal::cuda
