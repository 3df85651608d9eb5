#pragma once

#include <cstdint>
#include <vector>

namespace shoal {

// The steps during which a tensor needs its memory.
struct Lifetime {
  int64_t size_bytes = 0;
  int first_step = 0;
  int last_step = 0;  // inclusive
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // bytes, one per lifetime, multiples of 64
  int64_t size_bytes = 0;
};

// Places tensors in one piece of memory. No two that live at the same step overlap. Places the
// largest first, each at the lowest offset that is free throughout its life.
MemoryPlan PlanMemory(const std::vector<Lifetime>& lifetimes);

}  // namespace shoal
