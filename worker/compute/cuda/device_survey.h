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
  int compute_capability = 0;  // 90: 9.0
  int multiprocessors = 0;
  uint64_t total_bytes = 0;
  absl::Status error = absl::OkStatus();  // what CUDA said when it was asked about this one
};

// What there is of CUDA in this program and on this machine. Versions are CUDA's own numbers: 13000
// is 13.0.
struct DeviceSurvey {
  bool built_with_cuda = false;
  // The lowest compute capability that the program's code runs on; later ones do too.
  int least_compute_capability = 0;
  int runtime_version = 0;
  int driver_version = 0;  // the newest CUDA that the driver knows; 0: no driver
  std::vector<DeviceInfo> devices = {};
  absl::Status error = absl::OkStatus();  // what CUDA said when the devices were counted
};

// Looks at this machine; of a build without CUDA says only that. Neither needs a driver nor starts
// anything on a device: one that others hold is no matter to who wants another.
DeviceSurvey SurveyDevices();

// How much of the memory of a device of FindDevice is free, for who has not begun to use it: the
// process holds none of it afterwards. The calling thread's current device is as it was.
absl::StatusOr<uint64_t> FreeBytes(const DeviceInfo& device);

// "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f" of its 16 bytes.
std::string UuidText(std::span<const char, 16> uuid);

// "13.0" of 13000.
std::string VersionText(int version);

// The device with this index ("cuda:INDEX"). An error says what is missing and what to do about it:
// kUnimplemented without CUDA in the program, kFailedPrecondition without a driver, with one that
// is too old, or for a device that is too old, kNotFound where there is no such device, and
// `error`, the survey's or that of this device.
absl::StatusOr<DeviceInfo> FindDevice(const DeviceSurvey& survey, int index);

}  // namespace shoal::cuda
