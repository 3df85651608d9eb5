#include "worker/compute/runner/example_weights.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace shoal {

const std::vector<float>& ExampleWeights::Of(const Batch& batch, bool training) {
  if (batch.weights.empty()) {
    weights_.assign(batch.examples, 1);
  } else {
    weights_.assign(batch.weights.begin(), batch.weights.end());
  }
  if (class_weights_.empty() || !training) return weights_;
  const size_t size = batch.target.size() / batch.examples;
  for (int64_t i = 0; i < batch.examples; ++i) {
    const std::span<const float> label = batch.target.subspan(i * size, size);
    const int64_t of_class = size > 1 ? std::max_element(label.begin(), label.end()) - label.begin()
                                      : std::llrint(label[0]);
    const auto weight = class_weights_.find(of_class);
    if (weight != class_weights_.end()) weights_[i] *= static_cast<float>(weight->second);
  }
  return weights_;
}

}  // namespace shoal
