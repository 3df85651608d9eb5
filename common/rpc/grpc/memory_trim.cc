#include "common/rpc/grpc/memory_trim.h"

#include <malloc.h>

namespace shoal {

size_t MemoryTrim::FreeHeapBytes() { return mallinfo2().fordblks; }

void MemoryTrim::TrimHeap() { malloc_trim(0); }

void MemoryTrim::Look() {
  looks_ = options_.free_bytes() > kMaxFreeBytes ? looks_ + 1 : 0;
  if (looks_ < kLooks) return;
  looks_ = 0;
  options_.trim();
}

}  // namespace shoal
