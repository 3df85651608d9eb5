#include "worker/compute/plan/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace shoal {

MemoryPlan PlanMemory(const std::vector<Lifetime>& lifetimes) {
  constexpr int64_t kAlignment = 64;  // a cache line, and a vector of the widest instructions
  std::vector<int> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return lifetimes[a].size_bytes > lifetimes[b].size_bytes; });

  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<int> placed;  // by offset
  for (const int index : order) {
    const Lifetime& lifetime = lifetimes[index];
    const int64_t size = (lifetime.size_bytes + kAlignment - 1) / kAlignment * kAlignment;
    int64_t offset = 0;
    for (const int other : placed) {
      const Lifetime& taken = lifetimes[other];
      if (taken.last_step < lifetime.first_step || lifetime.last_step < taken.first_step) continue;
      if (offset + size <= plan.offsets[other]) break;
      offset = std::max(offset, (plan.offsets[other] + taken.size_bytes + kAlignment - 1) /
                                    kAlignment * kAlignment);
    }
    plan.offsets[index] = offset;
    plan.size_bytes = std::max(plan.size_bytes, offset + size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), index,
                                   [&](int a, int b) { return plan.offsets[a] < plan.offsets[b]; }),
                  index);
  }
  return plan;
}

}  // namespace shoal
