#pragma once

#include <cmath>
#include <cstdint>

#include "common/model/ops/random_uniform.h"
#include "worker/compute/op_math/host_device.h"
#include "worker/compute/program/run_context.h"

namespace shoal {

// The random bits of one layer in one step. Number i is a pure function of (job seed, step, layer
// seed, i). So recomputing a step gives the same numbers on any backend with any number of threads.
// Counter-based: the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
class StepRandom {
 public:
  SHOAL_HOST_DEVICE StepRandom(const RunContext& context, uint64_t layer_seed)
      : key_(Mix(context.job_seed + Mix(context.step + Mix(layer_seed)))) {}

  // Returns 32 random bits.
  SHOAL_HOST_DEVICE uint64_t Bits(uint64_t i) const { return Mix(key_ + i * kIncrement) >> 32; }

 private:
  static constexpr uint64_t kIncrement = 0x9e3779b97f4a7c15;
  SHOAL_HOST_DEVICE static uint64_t Mix(uint64_t z) {
    z += kIncrement;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  const uint64_t key_;
};

// Maps 32 random bits to a number in `range`. Rounds to float, so that a graph computed in double
// gets the same number.
SHOAL_HOST_DEVICE inline float UniformIn(const RandomUniformOp::Range& range, bool whole,
                                         uint64_t bits) {
  const double share = static_cast<double>(bits) / 4294967296.0;
  const double number = range.low + (range.high - range.low) * share;
  return static_cast<float>(whole ? std::floor(number) : number);
}

// Number i for an example of the step's batch.
inline float UniformDraw(const RandomUniformOp& op, const StepRandom& random, int64_t example,
                         int64_t i) {
  const int64_t first = op.one_of_batch ? 0 : example * static_cast<int64_t>(op.ranges.size());
  return UniformIn(op.ranges[i], op.whole, random.Bits(first + i));
}

}  // namespace shoal
