#include "common/model/ops/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "worker/compute/cpu/float_range.h"
#include "worker/compute/cpu/lane_sums.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/vector_math.h"

namespace shoal::cpu {
namespace {

// Not-a-number and infinities need no care here: the exponentials and their sum show them.
SHOAL_INLINE float LargestOf(const float* x, int64_t columns) {
  if (columns < kSumLanes) return *std::max_element(x, x + columns);
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

struct ExponentialTerms {
  const float* x;

  SHOAL_INLINE void Add(int64_t i, double& sum, double&) const { sum += double{Exp(x[i])}; }
};

// As SoftmaxRow and SoftmaxBackwardRow (op_math/softmax_rows.h), for some rows.
SHOAL_VECTORIZED void SoftmaxRows(SoftmaxOp::Kind kind, const float* x, int64_t rows,
                                  int64_t columns, float* y) {
  for (int64_t row = 0; row < rows * columns; row += columns) {
    const float largest = LargestOf(x + row, columns);
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) y[row + i] = x[row + i] - largest;
  }
  if (kind == SoftmaxOp::Kind::kLogSoftmax) {
    for (int64_t row = 0; row < rows; ++row, y += columns) {
      const auto log = static_cast<float>(std::log(SumLanes(columns, ExponentialTerms{y}).first));
#pragma omp simd
      for (int64_t i = 0; i < columns; ++i) y[i] -= log;
    }
    return;
  }
  // Over all rows, because rows may be shorter than vectors.
#pragma omp simd
  for (int64_t i = 0; i < rows * columns; ++i) y[i] = Exp(y[i]);
  for (int64_t row = 0; row < rows; ++row, y += columns) {
    const float factor = 1 / static_cast<float>(SumLanes(columns, ElementTerms{y}).first);
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) y[i] *= factor;
  }
}

SHOAL_VECTORIZED void SoftmaxRowsGradient(SoftmaxOp::Kind kind, const float* y, const float* dy,
                                          int64_t rows, int64_t columns, float* dx) {
  for (int64_t row = 0; row < rows; ++row, y += columns, dy += columns, dx += columns) {
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
}

// Rows in chunks: threads get whole chunks, so that an element is always in the same place of a
// vector.
struct RowChunks {
  explicit RowChunks(const Shape& shape)
      : columns(shape.back()),
        rows(ElementCount(shape) / columns),
        chunk_rows(std::max<int64_t>(1, 1024 / columns)) {}

  int64_t count() const { return (rows + chunk_rows - 1) / chunk_rows; }
  // The min number of chunks for another thread.
  int64_t grain() const { return std::max<int64_t>(1, (1 << 12) / (chunk_rows * columns)); }
  int64_t max_elements() const { return chunk_rows * columns; }
  int64_t rows_of(int64_t chunk) const { return std::min(chunk_rows, rows - chunk * chunk_rows); }
  // Index of its first element.
  int64_t place(int64_t chunk) const { return chunk * chunk_rows * columns; }

  int64_t columns;
  int64_t rows;
  int64_t chunk_rows;
};

}  // namespace

absl::Status Softmax(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const RowChunks chunks(builder.shape(node.outputs[0]));
  const ComputeDtype type = program.stored_dtype(node);
  const TensorId x = program.RowMajorAsStored(node.inputs[0]);
  AddLoopStep(
      chunks.count(), chunks.grain(), {x, builder.Output(node.outputs[0], type)},
      [kind = static_cast<const SoftmaxOp&>(*node.op).kind, x_type = builder.tensor_info(x).type,
       type, chunks](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        FloatRange x(data, 0, x_type, chunks.max_elements());
        FloatRange y(data, 1, type, chunks.max_elements());
        for (int64_t chunk = begin; chunk < end; ++chunk) {
          const int64_t i = chunks.place(chunk), rows = chunks.rows_of(chunk);
          const int64_t count = rows * chunks.columns;
          SoftmaxRows(kind, x.Load(i, count), rows, chunks.columns, y.To(i));
          y.Store(i, count);
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status SoftmaxBackward(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const RowChunks chunks(builder.shape(node.outputs[0]));
  const ComputeDtype type = program.stored_dtype(node);
  // Those of the model's last layer are float32. bfloat16 would lose most of the gradient of a sure
  // prediction.
  const TensorId y = program.RowMajorAsStored(node.inputs[0]);
  const TensorId dy = program.RowMajorAsStored(node.inputs[1]);
  AddLoopStep(
      chunks.count(), chunks.grain(), {y, dy, builder.Output(node.outputs[0], type)},
      [kind = static_cast<const SoftmaxBackwardOp&>(*node.op).kind,
       y_type = builder.tensor_info(y).type, dy_type = builder.tensor_info(dy).type, type,
       chunks](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        FloatRange y(data, 0, y_type, chunks.max_elements());
        FloatRange dy(data, 1, dy_type, chunks.max_elements());
        FloatRange dx(data, 2, type, chunks.max_elements());
        for (int64_t chunk = begin; chunk < end; ++chunk) {
          const int64_t i = chunks.place(chunk), rows = chunks.rows_of(chunk);
          const int64_t count = rows * chunks.columns;
          SoftmaxRowsGradient(kind, y.Load(i, count), dy.Load(i, count), rows, chunks.columns,
                              dx.To(i));
          dx.Store(i, count);
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
