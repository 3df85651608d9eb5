#include "worker/compute/cuda/trial.h"

#include <algorithm>
#include <cmath>

namespace shoal::cuda {

double SampleTolerance(ComputeDtype type) {
  // TF32, where it is allowed, has 11 bits, bfloat16 8.
  return type == ComputeDtype::kFloat32 ? 2e-3 : 2e-2;
}

bool Agree(const Trial& a, const Trial& b) {
  if (a.sample.size() != b.sample.size()) return false;
  float largest = 0;
  for (const Trial* trial : {&a, &b}) {
    for (const float value : trial->sample) largest = std::max(largest, std::abs(value));
  }
  if (!std::isfinite(largest)) return false;
  const double bound = std::max(a.tolerance, b.tolerance) * largest;
  return std::ranges::equal(a.sample, b.sample, [bound](double one, double other) {
    return std::abs(one - other) <= bound;
  });
}

size_t FastestOfThoseThatAgree(std::span<const Trial> trials) {
  const auto like = [&](const Trial& trial) {
    return std::ranges::count_if(trials, [&](const Trial& other) { return Agree(trial, other); });
  };
  const Trial& right = *std::ranges::max_element(trials, {}, like);
  size_t fastest = &right - trials.data();
  for (size_t i = 0; i < trials.size(); ++i) {
    if (Agree(right, trials[i]) && trials[i].time < trials[fastest].time) fastest = i;
  }
  // Of equally fast ones the first.
  for (size_t i = 0; i < fastest; ++i) {
    if (Agree(right, trials[i]) && trials[i].time == trials[fastest].time) return i;
  }
  return fastest;
}

}  // namespace shoal::cuda
