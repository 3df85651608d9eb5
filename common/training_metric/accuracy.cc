// "accuracy", as Keras takes it in compile(): BinaryAccuracy, CategoricalAccuracy or
// SparseCategoricalAccuracy, by loss and output (MetricFor). Not the class keras.metrics.Accuracy,
// which compares outputs with the target bit by bit.
#include "common/base/check.h"
#include "common/training_metric/metric.h"

namespace shoal {
namespace {

class Accuracy : public Metric {
 public:
  explicit Accuracy(KerasOptions& options) : Metric(options) {}

  // MetricFor gives another one for it.
  void Add(const PredictedBatch&, std::span<double>) const override {
    SHOAL_CHECK(false, "an accuracy that was not picked", "");
  }
};

}  // namespace

std::unique_ptr<Metric> MakeAccuracyMetric(KerasOptions& options) {
  return std::make_unique<Accuracy>(options);
}

}  // namespace shoal
