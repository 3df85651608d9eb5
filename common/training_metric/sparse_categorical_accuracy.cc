// Keras's SparseCategoricalAccuracy: the share of rows whose largest output is that of the target's
// class.
#include <algorithm>

#include "common/training_metric/metric.h"

namespace shoal {
namespace {

class SparseCategoricalAccuracy : public MeanMetric {
 public:
  explicit SparseCategoricalAccuracy(KerasOptions& options) : MeanMetric(options) {}

  bool Suits(Loss::Target target) const override { return target == Loss::Target::kClassNumber; }

  std::optional<RowScore> row_score() const override {
    return RowScore{RowScore::Kind::kClassIsLargest};
  }

 private:
  double OfRow(std::span<const float> prediction, const float* target) const override {
    return static_cast<float>(std::max_element(prediction.begin(), prediction.end()) -
                              prediction.begin()) == *target;
  }
};

}  // namespace

std::unique_ptr<Metric> MakeSparseCategoricalAccuracyMetric(KerasOptions& options) {
  return std::make_unique<SparseCategoricalAccuracy>(options);
}

}  // namespace shoal
