// Keras's MeanSquaredError: (p - t)^2.
#include "common/training_metric/metric.h"

namespace shoal {
namespace {

class MeanSquaredError : public MeanMetric {
 public:
  explicit MeanSquaredError(KerasOptions& options) : MeanMetric(options) {}

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

std::unique_ptr<Metric> MakeMeanSquaredErrorMetric(KerasOptions& options) {
  return std::make_unique<MeanSquaredError>(options);
}

}  // namespace shoal
