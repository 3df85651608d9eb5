#pragma once

#include <algorithm>
#include <cstdint>

namespace shoal {

// What a job's strategy makes of the learning rate of the optimizer: a factor for each update
// (docs/strategies.md). Plain data; as it is made it changes nothing.
struct RateScale {
  // Divided by the staleness of the gradient, where that is more than 1: Zhang, Gupta, Lian and
  // Liu, https://arxiv.org/abs/1511.05950.
  bool by_staleness = false;
  // Multiplied by this, to which it grows from 1 in the first updates, in equal parts: Goyal et
  // al., https://arxiv.org/abs/1706.02677.
  double factor = 1;
  uint64_t warmup_updates = 0;

  // Of update number `iteration`, 1 for the first, from a gradient that is `staleness` updates old.
  double Of(uint64_t iteration, uint64_t staleness) const {
    const double whole = static_cast<double>(warmup_updates);
    const double done = std::min(static_cast<double>(iteration - 1), whole);
    const double grown = warmup_updates == 0 ? factor : 1 + (factor - 1) * done / whole;
    return by_staleness && staleness > 1 ? grown / static_cast<double>(staleness) : grown;
  }
};

}  // namespace shoal
