#include "common/model/ops/batch_normalization.h"

#include <cmath>

#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void BatchNormalization(const Arguments& a) {
  const auto& op = static_cast<const BatchNormalizationOp&>(a.op);
  const View<const double>& x = a.inputs[0];
  for (int64_t c = 0; c < x.columns(); ++c) {
    double mean = a.inputs[1].data[c], variance = a.inputs[2].data[c];
    if (a.training && !op.frozen) {
      mean = variance = 0;
      for (int64_t row = 0; row < x.rows(); ++row) mean += x.data[row * x.columns() + c];
      mean /= x.rows();
      for (int64_t row = 0; row < x.rows(); ++row) {
        const double difference = x.data[row * x.columns() + c] - mean;
        variance += difference * difference;
      }
      variance /= x.rows();
    }
    const double gamma = op.scale ? a.inputs[3].data[c] : 1;
    const double beta = op.center ? a.inputs[3 + op.scale].data[c] : 0;
    const double factor = gamma / std::sqrt(variance + op.epsilon);
    for (int64_t i = c; i < x.size(); i += x.columns()) {
      a.outputs[0].data[i] = (x.data[i] - mean) * factor + beta;
    }
    a.outputs[1].data[c] = mean;
    a.outputs[2].data[c] = variance;
  }
}

// With xhat = (x - mean) / sqrt(variance + epsilon): dgamma = sum(dy xhat), dbeta = sum(dy), and dx
// = gamma / sqrt(...) (dy - dbeta / rows - xhat dgamma / rows). The last two terms account for mean
// and variance. Ioffe, Szegedy 2015.
void BatchNormalizationBackward(const Arguments& a) {
  const auto& op = static_cast<const BatchNormalizationBackwardOp&>(a.op);
  const View<const double>& x = a.inputs[0];
  const double* dy = a.inputs[1].data;
  for (int64_t c = 0; c < x.columns(); ++c) {
    const double mean = a.inputs[2].data[c];
    const double factor = 1 / std::sqrt(a.inputs[3].data[c] + op.epsilon);
    double dgamma = 0, dbeta = 0;
    for (int64_t i = c; i < x.size(); i += x.columns()) {
      dgamma += dy[i] * (x.data[i] - mean) * factor;
      dbeta += dy[i];
    }
    const double gamma = op.scale ? a.inputs[4].data[c] : 1;
    for (int64_t i = c; i < x.size(); i += x.columns()) {
      const double normalized = (x.data[i] - mean) * factor;
      const double by_statistics = op.frozen ? 0 : (dbeta + normalized * dgamma) / x.rows();
      a.outputs[0].data[i] = gamma * factor * (dy[i] - by_statistics);
    }
    a.outputs[1].data[c] = dgamma;
    a.outputs[2].data[c] = dbeta;
  }
}

}  // namespace shoal::reference
