#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace shoal::cuda {

// The driver's readings of a GPU; a reading that the GPU does not offer is missing.
struct GpuReading {
  std::optional<double> busy;  // share of about the last second in which kernels ran
  std::optional<uint64_t> used_bytes;
  std::optional<uint64_t> total_bytes;
  std::optional<double> celsius;
  std::optional<double> watts;
};

// NVIDIA's management library, which comes with the driver, loaded on first use. This file declares
// its C interface, because it is the same in all versions and builds without CUDA also use it.
// Thread-safe, like the library.
class Nvml {
 public:
  // kFailedPrecondition if the library is missing or cannot reach the driver.
  static absl::StatusOr<std::unique_ptr<const Nvml>> Load() {
    return LoadFrom("libnvidia-ml.so.1");
  }
  // The same for the library at `path`.
  static absl::StatusOr<std::unique_ptr<const Nvml>> LoadFrom(const std::string& path);

  // Reads the GPU with this UUID, in CUDA's notation. Takes some milliseconds. kNotFound, with the
  // library's message, if there is no such GPU.
  absl::StatusOr<GpuReading> Read(const std::string& uuid) const;
  // The GPU memory that no process has taken. Errors are Read's, and kUnimplemented if the driver
  // does not report it.
  absl::StatusOr<uint64_t> FreeBytes(const std::string& uuid) const;

 private:
  // As in nvml.h: nvmlReturn_t (0 is success), nvmlDevice_t, and two structs.
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
