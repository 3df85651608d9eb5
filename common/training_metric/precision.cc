// Keras's Precision: the share of the outputs above the threshold that are positive in the target.
#include "common/training_metric/confusion.h"
#include "common/training_metric/metric.h"

namespace shoal {
namespace {

class Precision : public Metric {
 public:
  explicit Precision(KerasOptions& options) : Metric(options), confusion_(options) {}

  int sum_count() const override { return 2; }

  // True positives, false positives.
  void Add(const PredictedBatch& batch, std::span<double> sums) const override {
    confusion_.ForEach(batch, [&](bool predicted, bool actual, double weight) {
      sums[0] += predicted && actual ? weight : 0;
      sums[1] += predicted && !actual ? weight : 0;
    });
  }

  double Result(std::span<const double> sums, double) const override {
    return sums[0] == 0 ? 0 : sums[0] / (sums[0] + sums[1]);
  }

 private:
  const Confusion confusion_;
};

}  // namespace

std::unique_ptr<Metric> MakePrecisionMetric(KerasOptions& options) {
  return std::make_unique<Precision>(options);
}

}  // namespace shoal
