#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"

namespace shoal::cuda {

// Bytes in the memory of the current device, aligned to 256. Owns them; they hold anything at
// first.
class DeviceMemory {
 public:
  // kResourceExhausted, with how much is free, where there are not so many.
  static absl::StatusOr<DeviceMemory> Allocate(size_t size_bytes);

  std::byte* data() const { return data_.get(); }
  size_t size_bytes() const { return size_bytes_; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  DeviceMemory(std::byte* data, size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}

  std::unique_ptr<std::byte[], Free> data_;
  size_t size_bytes_ = 0;
};

// Bytes of the host that stay where they are, so that copies to and from a device run beside the
// host's own work. Owns them; scarce, as nothing else on the machine may have them meanwhile.
class PinnedMemory {
 public:
  static absl::StatusOr<PinnedMemory> Allocate(size_t size_bytes);

  std::byte* data() const { return data_.get(); }
  size_t size_bytes() const { return size_bytes_; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  PinnedMemory(std::byte* data, size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}

  std::unique_ptr<std::byte[], Free> data_;
  size_t size_bytes_ = 0;
};

}  // namespace shoal::cuda
