// Keras's TopKCategoricalAccuracy: the share of rows whose largest target element is among the k
// largest outputs.
#include <algorithm>

#include "common/training_metric/metric.h"
#include "common/training_metric/top_k.h"

namespace shoal {
namespace {

class TopKCategoricalAccuracy : public MeanMetric {
 public:
  explicit TopKCategoricalAccuracy(KerasOptions& options)
      : MeanMetric(options), k_(options.Integer("k", 5, {1, 1 << 20})) {}

  std::optional<RowScore> row_score() const override {
    return RowScore{.kind = RowScore::Kind::kLargestInTopK, .k = k_};
  }

 private:
  double OfRow(std::span<const float> prediction, const float* target) const override {
    const float* const largest = std::max_element(target, target + prediction.size());
    return IsInTopK(prediction, largest - target, k_);
  }

  const uint64_t k_;
};

}  // namespace

std::unique_ptr<Metric> MakeTopKCategoricalAccuracyMetric(KerasOptions& options) {
  return std::make_unique<TopKCategoricalAccuracy>(options);
}

}  // namespace shoal
