#pragma once

#include <cstdint>

#include "common/rpc/event_loop.h"

namespace shoal {

// The only source of randomness in a simulation: splitmix64, the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Returns a number in [0, count). Requires count > 0.
  uint64_t Below(uint64_t count) { return Next() % count; }
  // Returns a number in [first, last].
  uint64_t Between(uint64_t first, uint64_t last) { return first + Below(last - first + 1); }
  Time Between(Time first, Time last) {
    return Time(static_cast<int64_t>(
        Between(static_cast<uint64_t>(first.count()), static_cast<uint64_t>(last.count()))));
  }
  bool OneIn(uint64_t count) { return Below(count) == 0; }
  bool Coin() { return OneIn(2); }

 private:
  uint64_t state_;
};

}  // namespace shoal
