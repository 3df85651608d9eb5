#include "common/model/ops/layer_normalization.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/compute/cpu/float_range.h"
#include "worker/compute/cpu/lane_sums.h"
#include "worker/compute/cpu/loop_kernel.h"

namespace shoal::cpu {
namespace {

struct RowStatistics {
  float mean;
  float factor;  // 1 / sqrt(variance + epsilon)
};

struct ValueTerms {
  const float* x;

  SHOAL_INLINE void Add(int64_t i, double& sum, double&) const { sum += double{x[i]}; }
};
struct SquareTerms {
  const float* x;
  double mean;

  SHOAL_INLINE void Add(int64_t i, double& squares, double&) const {
    const double distance = double{x[i]} - mean;
    squares += distance * distance;
  }
};

SHOAL_VECTORIZED RowStatistics StatisticsOf(const float* x, int64_t columns, double epsilon) {
  const double mean = SumLanes(columns, ValueTerms{x}).first / columns;
  const double squares = SumLanes(columns, SquareTerms{x, mean}).first;
  return {static_cast<float>(mean), static_cast<float>(1 / std::sqrt(squares / columns + epsilon))};
}

// `gamma` and `beta` may be null.
SHOAL_VECTORIZED void NormalizeRow(const float* x, const RowStatistics& statistics,
                                   const float* gamma, const float* beta, int64_t columns,
                                   float* y) {
  const float mean = statistics.mean, factor = statistics.factor;
  if (gamma != nullptr && beta != nullptr) {
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) y[c] = (x[c] - mean) * factor * gamma[c] + beta[c];
    return;
  }
  for (int64_t c = 0; c < columns; ++c) y[c] = (x[c] - mean) * factor;
  if (gamma != nullptr) {
    for (int64_t c = 0; c < columns; ++c) y[c] *= gamma[c];
  }
  if (beta != nullptr) {
    for (int64_t c = 0; c < columns; ++c) y[c] += beta[c];
  }
}

// The sum of the gradients of a row's normalized values, and of their products with these values.
struct GradientTerms {
  const float* x;
  const float* gradient;
  float mean;
  float factor;

  SHOAL_INLINE void Add(int64_t i, double& sum, double& products) const {
    sum += double{gradient[i]};
    products += double{gradient[i]} * double{(x[i] - mean) * factor};
  }
};

// Computes dx. Adds the row's terms to the gradients of gamma and beta. `gamma` may be null.
SHOAL_VECTORIZED void RowGradient(const float* x, const float* dy, const RowStatistics& statistics,
                                  const float* gamma, int64_t columns, float* dx, float* dgamma,
                                  float* dbeta) {
  const float mean = statistics.mean, factor = statistics.factor;
#pragma omp simd
  for (int64_t c = 0; c < columns; ++c) {
    dgamma[c] += dy[c] * ((x[c] - mean) * factor);
    dbeta[c] += dy[c];
  }
  const float* gradient = dy;
  if (gamma != nullptr) {
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) dx[c] = dy[c] * gamma[c];
    gradient = dx;
  }
  const TwoSums sums = SumLanes(columns, GradientTerms{x, gradient, mean, factor});
  const auto mean_gradient = static_cast<float>(sums.first / columns);
  const auto mean_product = static_cast<float>(sums.second / columns);
#pragma omp simd
  for (int64_t c = 0; c < columns; ++c) {
    dx[c] = factor * (gradient[c] - mean_gradient - (x[c] - mean) * factor * mean_product);
  }
}

// The rows of a part: few enough for float32 sums, which would lose digits over all rows. The parts
// depend on the shape alone, so that the order of sums does not depend on the number of threads.
int64_t RowsOfPart(int64_t columns) {
  return std::clamp<int64_t>(kElementGrain / std::max<int64_t>(columns, 1), 8, 256);
}

int64_t RowGrain(int64_t columns) { return std::max<int64_t>(1, kElementGrain / columns); }

}  // namespace

absl::Status LayerNormalization(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto& op = static_cast<const LayerNormalizationOp&>(*node.op);
  const auto [rows, columns] = CpuProgramBuilder::ExtentsOf(builder.shape(node.inputs[0]));
  const ComputeDtype type = program.stored_dtype(node);
  const TensorId x = program.RowMajorAsStored(node.inputs[0]);
  std::vector<TensorId> tensors = {x, builder.Output(node.outputs[0], type)};
  for (size_t i = 1; i < node.inputs.size(); ++i)
    tensors.push_back(program.RowMajor(node.inputs[i]));
  AddLoopStep(
      rows, RowGrain(columns), std::move(tensors),
      [columns = columns, x_type = builder.tensor_info(x).type, type, epsilon = op.epsilon,
       scale = op.scale,
       center = op.center](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        FloatRange x(data, 0, x_type, columns), y(data, 1, type, columns);
        const float* gamma = scale ? data[2] : nullptr;
        const float* beta = center ? data[2 + scale] : nullptr;
        for (int64_t i = begin * columns; i < end * columns; i += columns) {
          const float* row = x.Load(i, columns);
          const RowStatistics statistics = StatisticsOf(row, columns, epsilon);
          NormalizeRow(row, statistics, gamma, beta, columns, y.To(i));
          y.Store(i, columns);
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status LayerNormalizationBackward(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto& op = static_cast<const LayerNormalizationBackwardOp&>(*node.op);
  const auto [rows, columns] = CpuProgramBuilder::ExtentsOf(builder.shape(node.inputs[0]));
  const int64_t part_rows = RowsOfPart(columns);
  const int64_t parts = (rows + part_rows - 1) / part_rows;
  // By part: the terms of its rows in dgamma, then in dbeta.
  const TensorId sums =
      builder.AddTensor(parts * 2 * columns * static_cast<int64_t>(sizeof(float)));
  const ComputeDtype type = program.stored_dtype(node);
  const TensorId x = program.RowMajorAsStored(node.inputs[0]);
  const TensorId dy = program.RowMajorAsStored(node.inputs[1]);
  std::vector<TensorId> tensors = {x, dy, sums, builder.Output(node.outputs[0], type)};
  if (op.scale) tensors.push_back(program.RowMajor(node.inputs[2]));
  AddLoopStep(
      parts, std::max<int64_t>(1, RowGrain(columns) / part_rows), std::move(tensors),
      [rows = rows, columns = columns, part_rows, x_type = builder.tensor_info(x).type,
       dy_type = builder.tensor_info(dy).type, type, epsilon = op.epsilon,
       scale = op.scale](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        FloatRange x(data, 0, x_type, columns), dy(data, 1, dy_type, columns);
        FloatRange dx(data, 3, type, columns);
        for (int64_t part = begin; part < end; ++part) {
          float* dgamma = data[2] + part * 2 * columns;
          std::fill_n(dgamma, 2 * columns, 0.0f);
          for (int64_t row = part * part_rows; row < std::min(rows, (part + 1) * part_rows);
               ++row) {
            const int64_t i = row * columns;
            const float* x_row = x.Load(i, columns);
            const RowStatistics statistics = StatisticsOf(x_row, columns, epsilon);
            RowGradient(x_row, dy.Load(i, columns), statistics, scale ? data[4] : nullptr, columns,
                        dx.To(i), dgamma, dgamma + columns);
            dx.Store(i, columns);
          }
        }
      },
      program);
  AddLoopStep(
      columns, std::max<int64_t>(16, kElementGrain / parts),
      {sums, builder.Output(node.outputs[1]), builder.Output(node.outputs[2])},
      [parts, columns = columns](const RunContext&, const LoopTensors& data, int64_t begin,
                                 int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          double dgamma = 0, dbeta = 0;
          for (int64_t part = 0; part < parts; ++part) {
            dgamma += data[0][part * 2 * columns + c];
            dbeta += data[0][(part * 2 + 1) * columns + c];
          }
          data[1][c] = static_cast<float>(dgamma);
          data[2][c] = static_cast<float>(dbeta);
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
