// Keras's BinaryAccuracy: the share of outputs on the right side of the threshold. The target is 0
// or 1.
#include "common/training_metric/metric.h"

namespace shoal {
namespace {

class BinaryAccuracy : public MeanMetric {
 public:
  explicit BinaryAccuracy(KerasOptions& options)
      : MeanMetric(options),
        threshold_(options.Number("threshold", 0.5, {.min = -1e9, .max = 1e9})) {}

  std::optional<RowScore> row_score() const override {
    return RowScore{.kind = RowScore::Kind::kSideOfThreshold,
                    .threshold = static_cast<float>(threshold_)};
  }

 private:
  double OfRow(std::span<const float> prediction, const float* target) const override {
    double right = 0;
    for (size_t i = 0; i < prediction.size(); ++i) {
      right += (prediction[i] > static_cast<float>(threshold_) ? 1.0f : 0.0f) == target[i];
    }
    return right / static_cast<double>(prediction.size());
  }

  const double threshold_;
};

}  // namespace

std::unique_ptr<Metric> MakeBinaryAccuracyMetric(KerasOptions& options) {
  return std::make_unique<BinaryAccuracy>(options);
}

}  // namespace shoal
