#pragma once

#include "ps/optimizer/optimizer.h"

namespace shoal {

// Keras's SGD. Without momentum w -= lr g. With it m = momentum m - lr g, and w += m, or, with
// Nesterov, w += momentum m - lr g. Decoupled weight decay comes first: w -= lr decay w.
class Sgd : public Optimizer {
 public:
  explicit Sgd(const Job::Optimizer& options) : Optimizer(options), options_(options) {}

  float initial_slot_value(int) const override { return 0; }
  std::unique_ptr<const Update> Prepare(uint64_t iteration) const override;

 private:
  const Job::Optimizer options_;
};

}  // namespace shoal
