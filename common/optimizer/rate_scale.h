#pragma once

#include <cstdint>

namespace shoal {

// What a job's strategy makes of the learning rate of the optimizer: a factor for each update
// (docs/strategies.md). Plain data; as it is made it changes nothing.
struct RateScale {
  // Divided by the staleness of the gradient, where that is more than 1: Zhang, Gupta, Lian and
  // Liu, https://arxiv.org/abs/1511.05950.
  bool by_staleness = false;

  // Of an update from a gradient that is `staleness` updates old.
  double Of(uint64_t staleness) const {
    return by_staleness && staleness > 1 ? 1 / static_cast<double>(staleness) : 1;
  }
};

}  // namespace shoal
