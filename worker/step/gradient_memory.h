#pragma once

#include <memory>
#include <span>

#include "common/rpc/shared/shared_memory.h"
#include "worker/compute/program/page_aligned.h"

namespace shoal {

// The gradients of a step, initially 0. They lie in memory that can be lent to the ps of this
// machine (Network::Lend), which then reads them in place; in ordinary memory if the kernel has no
// such memory.
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
