// "accuracy" as in Keras's compile(): BinaryAccuracy, CategoricalAccuracy or
// SparseCategoricalAccuracy, depending on loss and output (MetricFor). Not the class
// keras.metrics.Accuracy, which compares outputs with the target bit by bit.
#include "common/base/check.h"
#include "common/training_metric/metric.h"

namespace shoal {
namespace {

class Accuracy : public Metric {
 public:
  explicit Accuracy(KerasOptions& options) : Metric(options) {}

  // Never called: MetricFor replaces this metric.
  void Add(const PredictedBatch&, std::span<double>) const override {
    SHOAL_CHECK(false, "an accuracy that was not picked", "");
  }
};

}  // namespace

std::unique_ptr<Metric> MakeAccuracyMetric(KerasOptions& options) {
  return std::make_unique<Accuracy>(options);
}

}  // namespace shoal
