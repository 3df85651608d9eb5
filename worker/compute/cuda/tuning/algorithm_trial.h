#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/model/compute_dtype.h"

namespace shoal::cuda {

// A tensor of a trial: made-up numbers, or results computed from them.
struct TrialTensor {
  ComputeDtype type;
  int64_t elements;
  bool written = false;

  int64_t size_bytes() const { return elements * SizeOf(type); }
};

// Number `element` of tensor `tensor`, before rounding to the tensor's type: from -1 to 1, the same
// in every trial. The numbers repeat after some 65,000. Each tensor has another period, so that
// factors do not repeat in step.
float TrialNumber(size_t tensor, int64_t element);
// The period of the numbers.
int64_t TrialNumbers(size_t tensor);

// The elements of a tensor to sample: `count` elements, `apart` apart from the first on, spread
// over the tensor.
struct SamplePlaces {
  explicit SamplePlaces(int64_t elements);
  int64_t count, apart;
};

// The result of trying one plan for a computation.
struct AlgorithmTrial {
  double time;  // of a run, in any unit
  // Some of the results, for the same inputs as in trials of other plans. Empty if results are not
  // checked.
  std::vector<float> sample = {};
  // The max difference of samples, relative to their largest number, that rounding and the order of
  // sums can explain.
  double tolerance = 0;
};

// The tolerance for results of this type.
double SampleTolerance(ComputeDtype type);

// Whether both have computed the same. A sample with non-finite numbers agrees with none.
bool Agree(const AlgorithmTrial& a, const AlgorithmTrial& b);

// Returns the index of the fastest trial among those that agree with most others; with equal
// support, those that agree with the first. Libraries have been wrong for unusual shapes, with an
// algorithm that is rarely chosen. So a fast plan must compute the same as the others. Requires at
// least one trial.
size_t FastestAgreeing(std::span<const AlgorithmTrial> trials);

}  // namespace shoal::cuda
