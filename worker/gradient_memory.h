#pragma once

#include <memory>
#include <span>

#include "common/rpc/shared_memory.h"
#include "worker/compute/page_aligned.h"

namespace shoal {

// The gradients of a step, 0 at first: in memory that can be lent to the ps of this machine
// (Network::Lend), so that they read them where they are; in ordinary memory where the kernel gives
// no other.
class GradientMemory {
 public:
  explicit GradientMemory(size_t count);
  std::span<float> floats() const { return floats_; }
  // Null: there is none to lend.
  const std::shared_ptr<const SharedMemory>& shared() const { return shared_; }

 private:
  std::shared_ptr<const SharedMemory> shared_;
  PageAlignedFloats ordinary_;
  std::span<float> floats_;
};

}  // namespace shoal
