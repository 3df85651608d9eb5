#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/device/device.h"

namespace shoal {

// A piece of memory that grows: the device's, or the host's with &Device::AllocateHost.
class GrowingDeviceMemory {
 public:
  using Allocation = absl::StatusOr<std::unique_ptr<Device::Memory>> (Device::*)(int64_t);
  explicit GrowingDeviceMemory(Allocation allocate = &Device::Allocate) : allocate_(allocate) {}

  // Makes the memory at least `size_bytes` large. Growing discards the contents.
  absl::Status Reserve(Device& device, int64_t size_bytes);

  char* data() const { return memory_ == nullptr ? nullptr : memory_->data(); }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  const Allocation allocate_;
  std::unique_ptr<Device::Memory> memory_;
  int64_t size_bytes_ = 0;
};

// Rounds up to more than the alignment that a device's vector loads require.
inline int64_t AlignedForDevice(int64_t size_bytes) {
  constexpr int64_t kAlignment = 256;
  return (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace shoal
