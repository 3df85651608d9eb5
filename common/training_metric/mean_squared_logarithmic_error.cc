// Keras's MeanSquaredLogarithmicError: (log(max(p, 1e-7) + 1) - log(max(t, 1e-7) + 1))^2.
#include <algorithm>
#include <cmath>

#include "common/training_metric/metric.h"

namespace shoal {
namespace {

class MeanSquaredLogarithmicError : public MeanMetric {
 public:
  explicit MeanSquaredLogarithmicError(KerasOptions& options) : MeanMetric(options) {}

  bool larger_is_better() const override { return false; }

 private:
  double OfRow(std::span<const float> prediction, const float* target) const override {
    double sum = 0;
    for (size_t i = 0; i < prediction.size(); ++i) {
      const double p = std::log1p(std::max<double>(prediction[i], 1e-7));
      const double t = std::log1p(std::max<double>(target[i], 1e-7));
      sum += (p - t) * (p - t);
    }
    return sum / static_cast<double>(prediction.size());
  }
};

}  // namespace

std::unique_ptr<Metric> MakeMeanSquaredLogarithmicErrorMetric(KerasOptions& options) {
  return std::make_unique<MeanSquaredLogarithmicError>(options);
}

}  // namespace shoal
