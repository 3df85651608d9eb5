#include "worker/compute/device/result_buffer.h"

namespace shoal {

ResultBuffer::ResultBuffer(const Program* program, Device* device, GrowingDeviceMemory* memory)
    : program_(*program), device_(*device), memory_(*memory) {
  size_bytes_ = OffsetOf(-1);
}

// The results lie one after the other. An id of no result gives the end of all.
int64_t ResultBuffer::OffsetOf(TensorId result) const {
  int64_t offset = 0;
  for (const TensorId id :
       {results().prediction, results().losses, results().sums, results().check}) {
    if (id < 0) continue;
    if (id == result) break;
    offset += AlignedForDevice(program_.tensors()[id].size_bytes);
  }
  return offset;
}

absl::Status ResultBuffer::StartCopying(TensorId result, const std::vector<void*>& addresses) {
  return device_.CopyOut(static_cast<const char*>(addresses[result]),
                         memory_.data() + OffsetOf(result), program_.tensors()[result].size_bytes);
}

}  // namespace shoal
