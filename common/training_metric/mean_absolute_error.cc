// Keras's MeanAbsoluteError: |p - t|.
#include <cmath>

#include "common/training_metric/metric.h"

namespace shoal {
namespace {

class MeanAbsoluteError : public MeanMetric {
 public:
  explicit MeanAbsoluteError(KerasOptions& options) : MeanMetric(options) {}

  bool larger_is_better() const override { return false; }

  std::optional<RowScore> row_score() const override {
    return RowScore{RowScore::Kind::kMeanAbsoluteError};
  }

 private:
  double OfRow(std::span<const float> prediction, const float* target) const override {
    double sum = 0;
    for (size_t i = 0; i < prediction.size(); ++i) {
      const double p = prediction[i], t = target[i];
      sum += std::abs(p - t);
    }
    return sum / static_cast<double>(prediction.size());
  }
};

}  // namespace

std::unique_ptr<Metric> MakeMeanAbsoluteErrorMetric(KerasOptions& options) {
  return std::make_unique<MeanAbsoluteError>(options);
}

}  // namespace shoal
