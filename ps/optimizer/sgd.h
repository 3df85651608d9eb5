#pragma once

#include "ps/optimizer/optimizer.h"

namespace shoal {

// Keras's SGD. Without momentum w -= lr g. With it m = momentum m - lr g, and w += m, or, with
// Nesterov, w += momentum m - lr g. Decoupled weight decay comes first: w -= lr decay w.
class Sgd : public Optimizer {
 public:
  explicit Sgd(const Job::Optimizer& options);

  float initial_slot_value(int) const override { return 0; }
  void Apply(std::span<const float> gradient, uint64_t iteration, std::span<const float> values,
             std::span<float> out, std::span<float* const> slots) const override;

 private:
  const float learning_rate_;
  const float momentum_;
  const bool nesterov_;
  const float decay_;  // learning rate times weight decay
};

}  // namespace shoal
