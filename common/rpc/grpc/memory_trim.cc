#include "common/rpc/grpc/memory_trim.h"

#include <malloc.h>

namespace shoal {

size_t MemoryTrim::FreeHeapBytes() { return mallinfo2().fordblks; }

void MemoryTrim::TrimHeap() { malloc_trim(0); }

void MemoryTrim::Check() {
  checks_ = options_.free_bytes() > kMaxFreeBytes ? checks_ + 1 : 0;
  if (checks_ < kChecks) return;
  checks_ = 0;
  options_.trim();
}

}  // namespace shoal
