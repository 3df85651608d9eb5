#pragma once

#include "ps/optimizer/optimizer.h"

namespace shoal {

// Keras's Adam: m += (g - m)(1 - beta_1), v += (g g - v)(1 - beta_2), w -= alpha m / (sqrt(v) +
// epsilon) with alpha = lr sqrt(1 - beta_2^t) / (1 - beta_1^t). Decoupled weight decay comes first:
// w -= lr decay w.
class Adam : public Optimizer {
 public:
  explicit Adam(const Job::Optimizer& options) : Optimizer(options), options_(options) {}

  float initial_slot_value(int) const override { return 0; }
  std::unique_ptr<const Update> Prepare(uint64_t iteration) const override;

 private:
  const Job::Optimizer options_;
};

}  // namespace shoal
