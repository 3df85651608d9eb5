// Keras's CategoricalAccuracy: the share of rows whose largest output is at the target's largest
// element.
#include <algorithm>

#include "common/training_metric/metric.h"

namespace shoal {
namespace {

class CategoricalAccuracy : public MeanMetric {
 public:
  explicit CategoricalAccuracy(KerasOptions& options) : MeanMetric(options) {}

  std::optional<RowScore> row_score() const override {
    return RowScore{RowScore::Kind::kLargestIsLargest};
  }

 private:
  double OfRow(std::span<const float> prediction, const float* target) const override {
    const float* const largest = std::max_element(target, target + prediction.size());
    return std::max_element(prediction.begin(), prediction.end()) - prediction.begin() ==
           largest - target;
  }
};

}  // namespace

std::unique_ptr<Metric> MakeCategoricalAccuracyMetric(KerasOptions& options) {
  return std::make_unique<CategoricalAccuracy>(options);
}

}  // namespace shoal
