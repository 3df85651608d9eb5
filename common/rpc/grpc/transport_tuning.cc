#include "common/rpc/grpc/transport_tuning.h"

#include <malloc.h>

#include "absl/synchronization/mutex.h"

namespace shoal {

void TuneAllocatorForTransport() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace shoal
