#pragma once

#include <cmath>

#include "common/model/ops/binary.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/strided.h"
#include "worker/compute/op_math/elementwise_functions.h"

// SumToOp and MaxToOp. A block, or a part of it, reduces the elements of one result. For a result
// of very many elements several blocks reduce a slice each, and ReduceSlicesKernel reduces their
// results. In double, because a result may have millions of elements.

namespace shoal::cuda {

// The reductions for the kernels below: a neutral first value and a function of two values.
struct SumReduction {
  static constexpr double kFirst = 0;
  SHOAL_HOST_DEVICE static double Of(double a, double b) { return a + b; }
};
struct MaxReduction {
  static constexpr double kFirst = -INFINITY;
  SHOAL_HOST_DEVICE static double Of(double a, double b) {
    return shoal::Binary<BinaryOp::Kind::kMaximum>(a, b);
  }
};

// `group` threads for a slice of a result.
template <typename Reduction, int group>
struct ReduceKernel {
  static constexpr int kThreads = 256;
  static constexpr int kPhases = 2;
  static constexpr int kSlices = kThreads / group;  // per block
  struct Shared {
    double shares[kThreads];
  };
  struct ThreadState {};

  const float* x;
  StridedAxes kept;     // of x, by result
  StridedAxes reduced;  // of x, by element of a result
  int64_t results;
  int64_t count;    // elements per result
  int64_t slices;   // per result
  double* partial;  // [slices, results]

  int64_t blocks() const { return (results * slices + kSlices - 1) / kSlices; }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState&) const {
    const int lane = place.thread % group;
    const int64_t at = place.block * kSlices + place.thread / group;
    if (at >= results * slices) return;
    const int64_t result = at % results, slice = at / results;
    if constexpr (phase == 0) {
      const float* const from = x + kept.Offset(result);
      double share = Reduction::kFirst;
      for (int64_t i = slice * group + lane; i < count; i += slices * group) {
        share = Reduction::Of(share, from[reduced.Offset(i)]);
      }
      shared.shares[place.thread] = share;
    } else if (lane == 0) {
      double sum = Reduction::kFirst;
      for (int i = 0; i < group; ++i) sum = Reduction::Of(sum, shared.shares[place.thread + i]);
      partial[at] = sum;
    }
  }
};

template <typename Reduction>
struct ReduceSlicesKernel {
  const double* partial;
  int64_t results;
  int64_t slices;
  float* y;

  int64_t items() const { return results; }
  SHOAL_HOST_DEVICE void operator()(int32_t result) const {
    double sum = Reduction::kFirst;
    for (int64_t slice = 0; slice < slices; ++slice) {
      sum = Reduction::Of(sum, partial[slice * results + result]);
    }
    y[result] = static_cast<float>(sum);
  }
};

}  // namespace shoal::cuda
