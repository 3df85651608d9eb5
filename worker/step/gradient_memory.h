#pragma once

#include <memory>
#include <span>

#include "common/rpc/shared/shared_memory.h"
#include "worker/compute/program/page_aligned.h"

namespace shoal {

// The gradients of a step, initially 0. Their memory can be lent to the ps of this machine
// (Network::Lend), which read it in place. It is ordinary memory if the kernel has none to share.
class GradientMemory {
 public:
  explicit GradientMemory(size_t count);
  std::span<float> floats() const { return floats_; }
  // Null if the memory cannot be lent.
  const std::shared_ptr<const SharedMemory>& shared() const { return shared_; }

 private:
  std::shared_ptr<const SharedMemory> shared_;
  PageAlignedFloats ordinary_;
  std::span<float> floats_;
};

}  // namespace shoal
