#include "worker/compute/device/growing_device_memory.h"

#include "common/base/status_macros.h"

namespace shoal {

absl::Status GrowingDeviceMemory::Reserve(Device& device, int64_t size_bytes) {
  if (size_bytes <= size_bytes_) return absl::OkStatus();
  memory_.reset();
  size_bytes_ = 0;
  SHOAL_ASSIGN_OR_RETURN(memory_, (device.*allocate_)(size_bytes));
  size_bytes_ = size_bytes;
  return absl::OkStatus();
}

}  // namespace shoal
