#pragma once

#include <cmath>

#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"

// What is asked of all gradients of a step at once, in one pass over their buffer: they are divided
// by the loss scale in place, and it is found whether all are finite, and their global norm. Bound
// by bandwidth: each is read and written once.

namespace shoal::cuda {

struct GradientCheck {
  float square_sum = 0;      // of the divided gradients
  float not_finite_sum = 0;  // 0: all are finite
};

// Leaves a result a block. The loss scale is in device memory, so that a captured graph runs with
// another one.
template <int width>
struct GradientCheckKernel {
  static constexpr int kThreads = 256;
  static constexpr int kPhases = 2;
  struct Shared {
    float squares[kThreads];
    float not_finite[kThreads];
  };
  struct Own {};

  float* gradients;
  int64_t size;  // a multiple of width
  const float* loss_scale;
  int64_t grid;            // blocks: a few times the multiprocessors
  GradientCheck* partial;  // [grid]

  int64_t blocks() const { return grid; }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const Place& place, Shared& shared, Own&) const {
    if constexpr (phase == 0) {
      const float factor = 1 / *loss_scale;
      float squares = 0, not_finite = 0;
      const int64_t step = grid * kThreads * width;
      for (int64_t i = (place.block * kThreads + place.thread) * width; i < size; i += step) {
        Pack<width> pack = Load<width>(gradients + i);
        for (int w = 0; w < width; ++w) {
          pack[w] *= factor;
          squares += pack[w] * pack[w];
          // Less itself, only what is finite is 0.
          if (pack[w] - pack[w] != 0) not_finite = 1;
        }
        Store(pack, gradients + i);
      }
      shared.squares[place.thread] = squares;
      shared.not_finite[place.thread] = not_finite;
    } else if (place.thread == 0) {
      GradientCheck check;
      for (int i = 0; i < kThreads; ++i) {
        check.square_sum += shared.squares[i];
        check.not_finite_sum += shared.not_finite[i];
      }
      partial[place.block] = check;
    }
  }
};

// Adds the blocks' results up, in their order.
struct GradientCheckSumKernel {
  const GradientCheck* partial;
  int64_t grid;
  GradientCheck* result;

  int64_t items() const { return 1; }
  SHOAL_HOST_DEVICE void operator()(int32_t) const {
    double squares = 0;
    GradientCheck sum;
    for (int64_t block = 0; block < grid; ++block) {
      squares += partial[block].square_sum;
      sum.not_finite_sum += partial[block].not_finite_sum;
    }
    sum.square_sum = static_cast<float>(squares);
    *result = sum;
  }
};

}  // namespace shoal::cuda
