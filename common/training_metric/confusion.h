#pragma once

#include <cstdint>
#include <optional>

#include "common/training_metric/metric.h"

namespace shoal {

// Decides which outputs are predicted positive and which are actually positive: the options of
// Precision and Recall (keras/src/metrics/confusion_metrics.py).
class Confusion {
 public:
  // Reads "thresholds", "class_id" and "top_k".
  explicit Confusion(KerasOptions& options);

  // Calls use(predicted, actual, weight of the example) for each counted output.
  template <typename Use>
  void ForEach(const PredictedBatch& batch, const Use& use) const {
    const size_t classes = batch.shape.size() > 1 ? static_cast<size_t>(batch.shape.back()) : 1;
    const size_t step = class_id_.has_value() ? classes : 1;
    if (class_id_.has_value() && *class_id_ >= classes) return;
    const size_t of_example = batch.prediction.size() / static_cast<size_t>(batch.shape[0]);
    for (size_t i = class_id_.value_or(0); i < batch.prediction.size(); i += step) {
      use(batch.prediction[i] > threshold_, batch.target[i] != 0,
          batch.weight(static_cast<int64_t>(i / of_example)));
    }
  }

 private:
  float threshold_ = 0.5;  // float, because it is compared with float32 outputs
  std::optional<uint64_t> class_id_;
};

}  // namespace shoal
