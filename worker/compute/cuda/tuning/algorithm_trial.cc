#include "worker/compute/cuda/tuning/algorithm_trial.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>

namespace shoal::cuda {
namespace {

constexpr int64_t kPrimes[] = {65521, 65519, 65497, 65479};
constexpr int64_t kMaxSampled = 512;

const std::vector<float>& Numbers() {
  static const std::vector<float> numbers = [] {
    std::minstd_rand random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> drawn(2 * kPrimes[0]);
    for (float& number : drawn) number = uniform(random);
    return drawn;
  }();
  return numbers;
}

}  // namespace

float TrialNumber(size_t tensor, int64_t element) {
  // Each tensor begins at another number.
  return Numbers()[1000 * (tensor % std::size(kPrimes)) + element % TrialNumbers(tensor)];
}

int64_t TrialNumbers(size_t tensor) { return kPrimes[tensor % std::size(kPrimes)]; }

SamplePlaces::SamplePlaces(int64_t elements)
    : count(std::min(kMaxSampled, elements)),
      // Odd, because extents are often even: an even distance could sample only one channel.
      apart(std::max<int64_t>(1, elements / std::max<int64_t>(1, count) - 1) | 1) {}

double SampleTolerance(ComputeDtype type) {
  // TF32, if allowed, has 11 bits, bfloat16 has 8.
  return type == ComputeDtype::kFloat32 ? 2e-3 : 2e-2;
}

bool Agree(const AlgorithmTrial& a, const AlgorithmTrial& b) {
  if (a.sample.size() != b.sample.size()) return false;
  float largest = 0;
  for (const AlgorithmTrial* trial : {&a, &b}) {
    for (const float value : trial->sample) largest = std::max(largest, std::abs(value));
  }
  if (!std::isfinite(largest)) return false;
  const double bound = std::max(a.tolerance, b.tolerance) * largest;
  return std::ranges::equal(a.sample, b.sample, [bound](double one, double other) {
    return std::abs(one - other) <= bound;
  });
}

size_t FastestAgreeing(std::span<const AlgorithmTrial> trials) {
  const auto like = [&](const AlgorithmTrial& trial) {
    return std::ranges::count_if(trials,
                                 [&](const AlgorithmTrial& other) { return Agree(trial, other); });
  };
  const AlgorithmTrial& right = *std::ranges::max_element(trials, {}, like);
  size_t fastest = &right - trials.data();
  for (size_t i = 0; i < trials.size(); ++i) {
    if (Agree(right, trials[i]) && trials[i].time < trials[fastest].time) fastest = i;
  }
  // If several are equally fast, take the first.
  for (size_t i = 0; i < fastest; ++i) {
    if (Agree(right, trials[i]) && trials[i].time == trials[fastest].time) return i;
  }
  return fastest;
}

}  // namespace shoal::cuda
