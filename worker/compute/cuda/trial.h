#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/model/compute_dtype.h"

namespace shoal::cuda {

// A tensor of what is tried out: made-up numbers, or what is computed of them.
struct TrialTensor {
  ComputeDtype type;
  int64_t elements;
  bool written = false;

  int64_t size_bytes() const { return elements * (type == ComputeDtype::kFloat32 ? 4 : 2); }
};

// The `element`-th number of the `tensor`-th of them, before it is rounded to the tensor's type:
// from -1 to 1, the same each time. After some 65,000 they come again, in each tensor after others,
// so that what is multiplied does not repeat in step.
float TrialNumber(size_t tensor, int64_t element);
// After how many.
int64_t TrialNumbers(size_t tensor);

// Elements that are looked at: so many, so far apart from the first on, all over a tensor.
struct SamplePlaces {
  explicit SamplePlaces(int64_t elements);
  int64_t count, apart;
};

// What trying out one way of computing something has shown.
struct Trial {
  double time;  // of a run, in any unit
  // Some of what it has computed, of the same numbers as other ways of the same; empty where that
  // is not looked at.
  std::vector<float> sample = {};
  // How far samples may be apart, in units of the largest number in them, that only rounding and
  // the order of sums tell apart.
  double tolerance = 0;
};

// By the type of what is written.
double SampleTolerance(ComputeDtype type);

// Whether both have computed the same. What is not finite is the same as nothing.
bool Agree(const Trial& a, const Trial& b);

// The fastest of those that agree with most others; of equally many, with the first. Libraries have
// been seen to be wrong for shapes that nobody has, by an algorithm that few would take, so that
// what is as fast as others is to compute what they do. An index; there is at least one trial.
size_t FastestOfThoseThatAgree(std::span<const Trial> trials);

}  // namespace shoal::cuda
