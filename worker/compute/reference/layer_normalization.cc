#include "common/model/ops/layer_normalization.h"

#include <cmath>

#include "worker/compute/reference/kernels.h"

namespace shoal::reference {
namespace {

struct RowStatistics {
  double mean = 0;
  double factor = 0;  // 1 / sqrt(variance + epsilon)
};
RowStatistics StatisticsOf(const double* x, int64_t columns, double epsilon) {
  double mean = 0, variance = 0;
  for (int64_t c = 0; c < columns; ++c) mean += x[c] / columns;
  for (int64_t c = 0; c < columns; ++c) variance += (x[c] - mean) * (x[c] - mean) / columns;
  return {mean, 1 / std::sqrt(variance + epsilon)};
}

}  // namespace

void LayerNormalization(const Arguments& a) {
  const auto& op = static_cast<const LayerNormalizationOp&>(a.op);
  const int64_t columns = a.output().columns();
  for (int64_t row = 0; row < a.output().rows(); ++row) {
    const double* x = a.inputs[0].data + row * columns;
    const auto [mean, factor] = StatisticsOf(x, columns, op.epsilon);
    for (int64_t c = 0; c < columns; ++c) {
      const double gamma = op.scale ? a.inputs[1].data[c] : 1;
      const double beta = op.center ? a.inputs[1 + op.scale].data[c] : 0;
      a.output().data[row * columns + c] = (x[c] - mean) * factor * gamma + beta;
    }
  }
}

// With xhat = (x - mean) * factor and g = dy gamma: dx = factor (g - mean(g) - xhat mean(g xhat)).
// The last two terms account for mean and variance. Ba, Kiros, Hinton 2016.
void LayerNormalizationBackward(const Arguments& a) {
  const auto& op = static_cast<const LayerNormalizationBackwardOp&>(a.op);
  const int64_t columns = a.outputs[0].columns();
  for (int64_t row = 0; row < a.outputs[0].rows(); ++row) {
    const double* x = a.inputs[0].data + row * columns;
    const double* dy = a.inputs[1].data + row * columns;
    const auto [mean, factor] = StatisticsOf(x, columns, op.epsilon);
    double mean_gradient = 0, mean_product = 0;
    for (int64_t c = 0; c < columns; ++c) {
      const double normalized = (x[c] - mean) * factor;
      const double gradient = dy[c] * (op.scale ? a.inputs[2].data[c] : 1);
      mean_gradient += gradient / columns;
      mean_product += gradient * normalized / columns;
      a.outputs[1].data[c] += dy[c] * normalized;
      a.outputs[2].data[c] += dy[c];
    }
    for (int64_t c = 0; c < columns; ++c) {
      const double normalized = (x[c] - mean) * factor;
      const double gradient = dy[c] * (op.scale ? a.inputs[2].data[c] : 1);
      a.outputs[0].data[row * columns + c] =
          factor * (gradient - mean_gradient - normalized * mean_product);
    }
  }
}

}  // namespace shoal::reference
