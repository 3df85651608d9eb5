#pragma once

#include <cmath>
#include <vector>

#include "common/model/model_layout.h"
#include "common/model/variable.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"
#include "worker/compute/program/gradient_check.h"

// Processes all gradients of a step in one pass over their buffer: divides them by the loss scale
// in place, checks whether all are finite, and computes their global norm. Bound by bandwidth: each
// is read and written once.
//
// The buffer is a ModelLayout's and holds more than gradients. Samples of moving averages have no
// loss scale and no part in the norm. Gaps and the places of frozen variables have undefined
// values.

namespace shoal::cuda {

// Adjacent gradients, without gaps.
struct GradientRange {
  int64_t offset = 0;  // in floats; a multiple of 16
  int64_t size = 0;
  int64_t first_pack = 0;  // packs of the ranges before it
};

constexpr int kGradientWidth = 4;

// As many ranges as fit into a kernel's arguments besides its pointers: every device allows at
// least 4 KB.
struct GradientRanges {
  static constexpr int kMax = 64;

  GradientRange ranges[kMax];
  int32_t count = 0;
  int64_t packs = 0;  // of all ranges; the last pack of a range may not be full

  // Returns false if there is no room for another range.
  bool Add(int64_t offset, int64_t size) {
    if (count > 0 && ranges[count - 1].offset + ranges[count - 1].size == offset) {
      GradientRange& last = ranges[count - 1];
      last.size += size;
      packs = last.first_pack + PacksOf(last.size);
      return true;
    }
    if (count == kMax) return false;
    ranges[count++] = {offset, size, packs};
    packs += PacksOf(size);
    return true;
  }
  static int64_t PacksOf(int64_t size) { return (size + kGradientWidth - 1) / kGradientWidth; }
};

// Returns the ranges of the gradients of all variables that the optimizer updates, in one
// GradientRanges or more.
inline std::vector<GradientRanges> RangesOfGradients(const std::vector<Variable>& variables,
                                                     const ModelLayout& layout) {
  std::vector<GradientRanges> parts;
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto& [offset, size] = layout.variables[i];
    if (variables[i].rule != UpdateRule::kOptimizer || size == 0) continue;
    if (parts.empty() || !parts.back().Add(offset, size)) {
      parts.emplace_back();
      parts.back().Add(offset, size);
    }
  }
  return parts;
}

// Stores one result per block. The loss scale is in the device's memory, so that a captured graph
// works for any scale.
struct GradientCheckKernel {
  static constexpr int kThreads = 256;
  static constexpr int kPhases = 2;
  struct Shared {
    float squares[kThreads];
    float not_finite[kThreads];
  };
  struct ThreadState {};

  float* gradients;
  GradientRanges at;
  const float* loss_scale;
  int64_t grid;            // blocks: a few times the multiprocessors
  GradientCheck* partial;  // [grid]

  int64_t blocks() const { return grid; }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState&) const {
    if constexpr (phase == 0) {
      const float factor = 1 / *loss_scale;
      float squares = 0, not_finite = 0;
      int32_t range = 0;
      for (int64_t i = place.block * kThreads + place.thread; i < at.packs; i += grid * kThreads) {
        while (range + 1 < at.count && at.ranges[range + 1].first_pack <= i) ++range;
        const int64_t first = (i - at.ranges[range].first_pack) * kGradientWidth;
        const int64_t left = at.ranges[range].size - first;
        float* const from = gradients + at.ranges[range].offset + first;
        if (left >= kGradientWidth) {
          Unscale<kGradientWidth>(factor, from, squares, not_finite);
        } else {
          for (int64_t j = 0; j < left; ++j) Unscale<1>(factor, from + j, squares, not_finite);
        }
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

 private:
  template <int width>
  SHOAL_HOST_DEVICE static void Unscale(float factor, float* gradients, float& squares,
                                        float& not_finite) {
    Pack<width> pack = Load<width>(gradients);
    for (int i = 0; i < width; ++i) {
      pack[i] *= factor;
      squares += pack[i] * pack[i];
      // x - x is 0 exactly for finite x. NOLINTNEXTLINE(misc-redundant-expression)
      if (pack[i] - pack[i] != 0) not_finite = 1;
    }
    Store(pack, gradients);
  }
};

// Adds up the blocks' results, in their order.
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
