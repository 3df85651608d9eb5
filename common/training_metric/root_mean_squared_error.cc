// Keras's RootMeanSquaredError: the root of the mean of (p - t)^2.
#include <cmath>

#include "common/training_metric/metric.h"
#include "common/training_metric/squared_error.h"

namespace shoal {
namespace {

class RootMeanSquaredError : public MeanMetric {
 public:
  explicit RootMeanSquaredError(KerasOptions& options) : MeanMetric(options) {}

  bool larger_is_better() const override { return false; }

  double Result(std::span<const double> sums, double examples) const override {
    return std::sqrt(sums[0] / examples);
  }

  std::optional<RowScore> row_score() const override {
    return RowScore{RowScore::Kind::kMeanSquaredError};
  }

 private:
  double OfRow(std::span<const float> prediction, const float* target) const override {
    return MeanOfSquaredErrors(prediction, target);
  }
};

}  // namespace

std::unique_ptr<Metric> MakeRootMeanSquaredErrorMetric(KerasOptions& options) {
  return std::make_unique<RootMeanSquaredError>(options);
}

}  // namespace shoal
