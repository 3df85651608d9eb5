#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "worker/compute/program/batch.h"

namespace shoal {

// The weight of each example of a batch: its own (1 if it has none), times its class's weight in
// training (1 if it has none). Source: class_weight_to_sample_weights in Keras's
// data_adapter_utils.
class ExampleWeights {
 public:
  // By class; empty: all 1.
  explicit ExampleWeights(std::map<int64_t, double> class_weights)
      : class_weights_(std::move(class_weights)) {}

  // Valid until the next call. Not thread-safe.
  const std::vector<float>& Of(const Batch& batch, bool training);

 private:
  const std::map<int64_t, double> class_weights_;
  std::vector<float> weights_;
};

}  // namespace shoal
