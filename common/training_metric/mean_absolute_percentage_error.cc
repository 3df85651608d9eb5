// Keras's MeanAbsolutePercentageError: 100 |(t - p) / max(|t|, 1e-7)|.
#include <algorithm>
#include <cmath>

#include "common/training_metric/metric.h"

namespace shoal {
namespace {

class MeanAbsolutePercentageError : public MeanMetric {
 public:
  explicit MeanAbsolutePercentageError(KerasOptions& options) : MeanMetric(options) {}

  bool larger_is_better() const override { return false; }

 private:
  double OfRow(std::span<const float> prediction, const float* target) const override {
    double sum = 0;
    for (size_t i = 0; i < prediction.size(); ++i) {
      const double p = prediction[i], t = target[i];
      sum += 100 * std::abs((t - p) / std::max(std::abs(t), 1e-7));
    }
    return sum / static_cast<double>(prediction.size());
  }
};

}  // namespace

std::unique_ptr<Metric> MakeMeanAbsolutePercentageErrorMetric(KerasOptions& options) {
  return std::make_unique<MeanAbsolutePercentageError>(options);
}

}  // namespace shoal
