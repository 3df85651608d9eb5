#pragma once

#include <cstdint>

namespace shoal {

// The random bits of one dropout layer in one step: element i is kept or dropped as a pure function
// of (job seed, step, layer seed, i), so that a step computed twice, by whichever backend and
// however many threads, is the same. Counter-based: the finaliser of SplitMix64 (Steele, Lea, Flood
// 2014).
class DropoutMask {
 public:
  DropoutMask(uint64_t job_seed, uint64_t step, uint64_t layer_seed, double rate)
      : key_(Mix(job_seed + Mix(step + Mix(layer_seed)))),
        dropped_below_(static_cast<uint64_t>(rate * 4294967296.0)),
        scale_(rate < 1 ? 1 / (1 - rate) : 0) {}

  bool Keeps(uint64_t element) const {
    return (Mix(key_ + element * kIncrement) >> 32) >= dropped_below_;
  }
  // What element i is multiplied by: 0, or 1 / (1 - rate).
  template <typename Scalar>
  Scalar Factor(uint64_t element) const {
    return Keeps(element) ? static_cast<Scalar>(scale_) : Scalar(0);
  }

 private:
  static constexpr uint64_t kIncrement = 0x9e3779b97f4a7c15;
  static uint64_t Mix(uint64_t z) {
    z += kIncrement;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  const uint64_t key_;
  const uint64_t dropped_below_;  // of 2^32
  const double scale_;
};

}  // namespace shoal
