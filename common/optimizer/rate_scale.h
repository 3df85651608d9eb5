#pragma once

#include <algorithm>
#include <cstdint>

namespace shoal {

// A job strategy's factor of the optimizer's learning rate, per update (docs/strategies.md). Plain
// data. The default has no effect.
struct RateScale {
  // Divides the rate by the staleness of the gradient if that is more than 1: Zhang, Gupta, Lian
  // and Liu, https://arxiv.org/abs/1511.05950.
  bool by_staleness = false;
  // Multiplies the rate by this. The factor grows linearly from 1 during the first
  // `warmup_updates`: Goyal et al., https://arxiv.org/abs/1706.02677.
  double factor = 1;
  uint64_t warmup_updates = 0;

  // The factor of update number `iteration`, 1 for the first, for a gradient that is `staleness`
  // updates old.
  double Of(uint64_t iteration, uint64_t staleness) const {
    const double whole = static_cast<double>(warmup_updates);
    const double done = std::min(static_cast<double>(iteration - 1), whole);
    const double grown = warmup_updates == 0 ? factor : 1 + (factor - 1) * done / whole;
    return by_staleness && staleness > 1 ? grown / static_cast<double>(staleness) : grown;
  }
};

}  // namespace shoal
