#include "common/model/ops/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "worker/compute/cpu/lane_sums.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/vector_math.h"

namespace shoal::cpu {
namespace {

// The min number of rows for another thread.
int64_t SoftmaxGrain(int64_t columns) { return std::max<int64_t>(1, (1 << 12) / columns); }

// Not-a-number and infinities need no care here: the exponentials and their sum show them.
SHOAL_INLINE float LargestOf(const float* x, int64_t columns) {
  float lanes[kSumLanes];
  std::fill_n(lanes, kSumLanes, -std::numeric_limits<float>::infinity());
  int64_t i = 0;
  for (; i + kSumLanes <= columns; i += kSumLanes) {
#pragma omp simd
    for (int lane = 0; lane < kSumLanes; ++lane) {
      lanes[lane] = lanes[lane] < x[i + lane] ? x[i + lane] : lanes[lane];
    }
  }
  for (; i < columns; ++i) lanes[0] = std::max(lanes[0], x[i]);
  return *std::max_element(lanes, lanes + kSumLanes);
}

struct ElementTerms {
  const float* x;

  SHOAL_INLINE void Add(int64_t i, double& sum, double&) const { sum += double{x[i]}; }
};
struct ProductTerms {
  const float* a;
  const float* b;

  SHOAL_INLINE void Add(int64_t i, double& sum, double&) const {
    sum += double{a[i]} * double{b[i]};
  }
};

// As SoftmaxRow and SoftmaxBackwardRow (op_math/softmax_rows.h), in vectors.
SHOAL_VECTORIZED void SoftmaxLoop(SoftmaxOp::Kind kind, const float* x, int64_t columns, float* y) {
  const float largest = LargestOf(x, columns);
#pragma omp simd
  for (int64_t i = 0; i < columns; ++i) y[i] = Exp(x[i] - largest);
  const double sum = SumLanes(columns, ElementTerms{y}).first;
  if (kind == SoftmaxOp::Kind::kSoftmax) {
    const auto factor = static_cast<float>(1 / sum);
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) y[i] *= factor;
  } else {
    const auto log = static_cast<float>(std::log(sum));
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) y[i] = x[i] - largest - log;
  }
}

SHOAL_VECTORIZED void SoftmaxBackwardLoop(SoftmaxOp::Kind kind, const float* y, const float* dy,
                                          int64_t columns, float* dx) {
  if (kind == SoftmaxOp::Kind::kSoftmax) {
    const auto sum = static_cast<float>(SumLanes(columns, ProductTerms{y, dy}).first);
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) dx[i] = y[i] * (dy[i] - sum);
  } else {
    const auto sum = static_cast<float>(SumLanes(columns, ElementTerms{dy}).first);
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) dx[i] = dy[i] - Exp(y[i]) * sum;
  }
}

}  // namespace

absl::Status Softmax(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Shape shape = builder.shape(node.outputs[0]);
  AddLoopStep(
      ElementCount(shape) / shape.back(), SoftmaxGrain(shape.back()),
      {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [kind = static_cast<const SoftmaxOp&>(*node.op).kind, columns = shape.back()](
          const RunContext&, float* const* data, int64_t begin, int64_t end) {
        for (int64_t i = begin * columns; i < end * columns; i += columns) {
          SoftmaxLoop(kind, data[0] + i, columns, data[1] + i);
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status SoftmaxBackward(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Shape shape = builder.shape(node.outputs[0]);
  AddLoopStep(
      ElementCount(shape) / shape.back(), SoftmaxGrain(shape.back()),
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [kind = static_cast<const SoftmaxBackwardOp&>(*node.op).kind, columns = shape.back()](
          const RunContext&, float* const* data, int64_t begin, int64_t end) {
        for (int64_t i = begin * columns; i < end * columns; i += columns) {
          SoftmaxBackwardLoop(kind, data[0] + i, data[1] + i, columns, data[2] + i);
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
