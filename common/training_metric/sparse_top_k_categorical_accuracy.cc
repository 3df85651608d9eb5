// Keras's SparseTopKCategoricalAccuracy: the share of rows whose target class is among the k
// largest outputs.
#include "common/training_metric/metric.h"
#include "common/training_metric/top_k.h"

namespace shoal {
namespace {

class SparseTopKCategoricalAccuracy : public MeanMetric {
 public:
  explicit SparseTopKCategoricalAccuracy(KerasOptions& options)
      : MeanMetric(options), k_(options.Integer("k", 5, {1, 1 << 20})) {}

  bool Suits(Loss::Target target) const override { return target == Loss::Target::kClassNumber; }

  std::optional<RowScore> row_score() const override {
    return RowScore{.kind = RowScore::Kind::kClassInTopK, .k = k_};
  }

 private:
  double OfRow(std::span<const float> prediction, const float* target) const override {
    return IsInTopK(prediction, static_cast<int64_t>(*target), k_);
  }

  const uint64_t k_;
};

}  // namespace

std::unique_ptr<Metric> MakeSparseTopKCategoricalAccuracyMetric(KerasOptions& options) {
  return std::make_unique<SparseTopKCategoricalAccuracy>(options);
}

}  // namespace shoal
