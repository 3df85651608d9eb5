// Keras's MeanSquaredError: (p - t)^2.
#include "common/training_metric/metric.h"
#include "common/training_metric/squared_error.h"

namespace shoal {
namespace {

class MeanSquaredError : public MeanMetric {
 public:
  explicit MeanSquaredError(KerasOptions& options) : MeanMetric(options) {}

  bool larger_is_better() const override { return false; }

  std::optional<RowScore> row_score() const override {
    return RowScore{RowScore::Kind::kMeanSquaredError};
  }

 private:
  double OfRow(std::span<const float> prediction, const float* target) const override {
    return MeanOfSquaredErrors(prediction, target);
  }
};

}  // namespace

std::unique_ptr<Metric> MakeMeanSquaredErrorMetric(KerasOptions& options) {
  return std::make_unique<MeanSquaredError>(options);
}

}  // namespace shoal
