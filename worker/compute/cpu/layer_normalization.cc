#include "common/model/ops/layer_normalization.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/compute/cpu/loop_kernel.h"

namespace shoal::cpu {
namespace {

struct RowStatistics {
  float mean;
  float factor;  // 1 / sqrt(variance + epsilon)
};

SHOAL_VECTORIZED RowStatistics StatisticsOf(const float* x, int64_t columns, double epsilon) {
  double sum = 0, squares = 0;
  for (int64_t c = 0; c < columns; ++c) sum += x[c];
  const double mean = sum / columns;
  for (int64_t c = 0; c < columns; ++c) squares += (x[c] - mean) * (x[c] - mean);
  return {static_cast<float>(mean), static_cast<float>(1 / std::sqrt(squares / columns + epsilon))};
}

// `gamma` and `beta` may be null.
SHOAL_VECTORIZED void NormalizeRow(const float* x, const RowStatistics& statistics,
                                   const float* gamma, const float* beta, int64_t columns,
                                   float* y) {
  const auto [mean, factor] = statistics;
  for (int64_t c = 0; c < columns; ++c) y[c] = (x[c] - mean) * factor;
  if (gamma != nullptr) {
    for (int64_t c = 0; c < columns; ++c) y[c] *= gamma[c];
  }
  if (beta != nullptr) {
    for (int64_t c = 0; c < columns; ++c) y[c] += beta[c];
  }
}

SHOAL_VECTORIZED void RowGradient(const float* x, const float* dy, const RowStatistics& statistics,
                                  const float* gamma, int64_t columns, float* dx) {
  const auto [mean, factor] = statistics;
  double gradient_sum = 0, product_sum = 0;
  for (int64_t c = 0; c < columns; ++c) {
    dx[c] = gamma == nullptr ? dy[c] : dy[c] * gamma[c];
    gradient_sum += dx[c];
    product_sum += double{dx[c]} * ((x[c] - mean) * factor);
  }
  const auto mean_gradient = static_cast<float>(gradient_sum / columns);
  const auto mean_product = static_cast<float>(product_sum / columns);
  for (int64_t c = 0; c < columns; ++c) {
    dx[c] = factor * (dx[c] - mean_gradient - (x[c] - mean) * factor * mean_product);
  }
}

// Computes dgamma and dbeta of columns [begin, end), for some rows at a time. Float32 sums over all
// rows would lose digits.
SHOAL_VECTORIZED void ColumnGradients(const float* x, const float* dy,
                                      const RowStatistics* statistics, int64_t rows,
                                      int64_t columns, int64_t begin, int64_t end, float* dgamma,
                                      float* dbeta) {
  constexpr int64_t kRows = 256, kColumns = 64;
  for (int64_t first = begin; first < end; first += kColumns) {
    const int64_t width = std::min(kColumns, end - first);
    double gamma_sum[kColumns] = {}, beta_sum[kColumns] = {};
    for (int64_t top = 0; top < rows; top += kRows) {
      float gamma_part[kColumns] = {}, beta_part[kColumns] = {};
      for (int64_t row = top; row < std::min(rows, top + kRows); ++row) {
        const auto [mean, factor] = statistics[row];
        const int64_t place = row * columns + first;
        for (int64_t c = 0; c < width; ++c) {
          gamma_part[c] += dy[place + c] * ((x[place + c] - mean) * factor);
          beta_part[c] += dy[place + c];
        }
      }
      for (int64_t c = 0; c < width; ++c) {
        gamma_sum[c] += gamma_part[c];
        beta_sum[c] += beta_part[c];
      }
    }
    for (int64_t c = 0; c < width; ++c) {
      dgamma[first + c] = static_cast<float>(gamma_sum[c]);
      dbeta[first + c] = static_cast<float>(beta_sum[c]);
    }
  }
}

int64_t RowGrain(int64_t columns) { return std::max<int64_t>(1, kElementGrain / columns); }

}  // namespace

absl::Status LayerNormalization(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const auto& op = static_cast<const LayerNormalizationOp&>(*node.op);
  const auto [rows, columns] = CpuProgram::ExtentsOf(builder.shape(node.inputs[0]));
  std::vector<TensorId> tensors = {program.RowMajor(node.inputs[0]),
                                   builder.Output(node.outputs[0])};
  for (size_t i = 1; i < node.inputs.size(); ++i)
    tensors.push_back(program.RowMajor(node.inputs[i]));
  AddLoopStep(
      rows, RowGrain(columns), std::move(tensors),
      [columns = columns, epsilon = op.epsilon, scale = op.scale, center = op.center](
          const RunContext&, float* const* data, int64_t begin, int64_t end) {
        const float* gamma = scale ? data[2] : nullptr;
        const float* beta = center ? data[2 + scale] : nullptr;
        for (int64_t i = begin * columns; i < end * columns; i += columns) {
          const RowStatistics statistics = StatisticsOf(data[0] + i, columns, epsilon);
          NormalizeRow(data[0] + i, statistics, gamma, beta, columns, data[1] + i);
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status LayerNormalizationBackward(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const auto& op = static_cast<const LayerNormalizationBackwardOp&>(*node.op);
  const auto [rows, columns] = CpuProgram::ExtentsOf(builder.shape(node.inputs[0]));
  const TensorId x = program.RowMajor(node.inputs[0]), dy = program.RowMajor(node.inputs[1]);
  const TensorId statistics = builder.AddTensor(rows * static_cast<int64_t>(sizeof(RowStatistics)));
  std::vector<TensorId> tensors = {x, dy, statistics, builder.Output(node.outputs[0])};
  if (op.scale) tensors.push_back(program.RowMajor(node.inputs[2]));
  AddLoopStep(
      rows, RowGrain(columns), std::move(tensors),
      [columns = columns, epsilon = op.epsilon, scale = op.scale](
          const RunContext&, float* const* data, int64_t begin, int64_t end) {
        auto* rows_statistics = reinterpret_cast<RowStatistics*>(data[2]);
        for (int64_t row = begin; row < end; ++row) {
          const int64_t i = row * columns;
          rows_statistics[row] = StatisticsOf(data[0] + i, columns, epsilon);
          RowGradient(data[0] + i, data[1] + i, rows_statistics[row], scale ? data[4] : nullptr,
                      columns, data[3] + i);
        }
      },
      program);
  AddLoopStep(
      columns, std::max<int64_t>(16, kElementGrain / rows),
      {x, dy, statistics, builder.Output(node.outputs[1]), builder.Output(node.outputs[2])},
      [rows = rows, columns = columns](const RunContext&, float* const* data, int64_t begin,
                                       int64_t end) {
        ColumnGradients(data[0], data[1], reinterpret_cast<const RowStatistics*>(data[2]), rows,
                        columns, begin, end, data[3], data[4]);
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
