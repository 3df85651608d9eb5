// Keras's RootMeanSquaredError: the root of the mean of (p - t)^2.
#include <cmath>

#include "common/training_metric/metric.h"

namespace shoal {
namespace {

class RootMeanSquaredError : public MeanMetric {
 public:
  explicit RootMeanSquaredError(KerasOptions& options) : MeanMetric(options) {}

  double Figure(std::span<const double> sums, double examples) const override {
    return std::sqrt(sums[0] / examples);
  }

 private:
  double OfRow(std::span<const float> prediction, const float* target) const override {
    double sum = 0;
    for (size_t i = 0; i < prediction.size(); ++i) {
      const double p = prediction[i], t = target[i];
      sum += (p - t) * (p - t);
    }
    return sum / static_cast<double>(prediction.size());
  }
};

}  // namespace

std::unique_ptr<Metric> MakeRootMeanSquaredErrorMetric(KerasOptions& options) {
  return std::make_unique<RootMeanSquaredError>(options);
}

}  // namespace shoal
