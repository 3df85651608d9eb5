#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"

namespace shoal::cuda {

// Memory of the current device, aligned to 256 bytes. Owns it. Uninitialised.
class DeviceMemory {
 public:
  // kResourceExhausted, with the free memory, if there is too little.
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

// Pinned memory of the host: copies to and from a device run in parallel with the host's own work.
// Owns it. Scarce, because nothing else on the machine can use it.
class PinnedMemory {
 public:
  // kResourceExhausted if there is too little.
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
