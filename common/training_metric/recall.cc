// Keras's Recall: the share of the positive targets whose output is above the threshold.
#include "common/training_metric/confusion.h"
#include "common/training_metric/metric.h"

namespace shoal {
namespace {

class Recall : public Metric {
 public:
  explicit Recall(KerasOptions& options) : Metric(options), confusion_(options) {}

  int sum_count() const override { return 2; }

  // True positives, false negatives.
  void Add(const PredictedBatch& batch, std::span<double> sums) const override {
    confusion_.ForEach(batch, [&](bool predicted, bool actual, double weight) {
      sums[0] += predicted && actual ? weight : 0;
      sums[1] += !predicted && actual ? weight : 0;
    });
  }

  double Result(std::span<const double> sums, double) const override {
    return sums[0] == 0 ? 0 : sums[0] / (sums[0] + sums[1]);
  }

 private:
  const Confusion confusion_;
};

}  // namespace

std::unique_ptr<Metric> MakeRecallMetric(KerasOptions& options) {
  return std::make_unique<Recall>(options);
}

}  // namespace shoal
