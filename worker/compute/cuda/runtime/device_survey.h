#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace shoal::cuda {

// A GPU, as CUDA describes it.
struct DeviceInfo {
  int index = 0;
  std::string name = {};
  std::string uuid = {};       // "GPU-8e3f…", as nvidia-smi names it
  int compute_capability = 0;  // 90 means 9.0
  int multiprocessors = 0;
  uint64_t total_bytes = 0;
  absl::Status error = absl::OkStatus();  // CUDA's error from the query of this device
};

// The state of CUDA in this program and on this machine. Versions are CUDA's own numbers: 13000 is
// 13.0.
struct DeviceSurvey {
  bool built_with_cuda = false;
  // The lowest compute capability that the program's code runs on; it also runs on later ones.
  int min_compute_capability = 0;
  int runtime_version = 0;
  int driver_version = 0;  // the newest CUDA that the driver knows; 0: no driver
  std::vector<DeviceInfo> devices = {};
  absl::Status error = absl::OkStatus();  // CUDA's error from counting the devices
};

// Surveys this machine; a build without CUDA reports only that. Needs no driver and starts nothing
// on a device, so a device held by another process does no harm.
DeviceSurvey SurveyDevices();

// Returns the free memory of a device from FindDevice that this process has not used yet. The
// process holds none of the device's memory afterwards, and the calling thread's current device
// stays the same.
absl::StatusOr<uint64_t> FreeBytes(const DeviceInfo& device);

// Formats 16 bytes as "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f".
std::string UuidText(std::span<const char, 16> uuid);

// Formats 13000 as "13.0".
std::string VersionText(int version);

// Returns the device with this index ("cuda:INDEX"). The message of an error says what is missing
// and how to fix it. kUnimplemented: the program has no CUDA. kFailedPrecondition: there is no
// driver, or the driver or the device is too old. kNotFound: no such device. Otherwise the `error`
// of the survey or of this device.
absl::StatusOr<DeviceInfo> FindDevice(const DeviceSurvey& survey, int index);

}  // namespace shoal::cuda
