#pragma once

#include <span>
#include <vector>

#include "common/json/keras_options.h"

namespace shoal {

// What becomes of gradients before all else, as Keras has it (keras/src/optimizers/
// base_optimizer.py). Done where the whole gradient is, by the worker: a norm is that of a whole
// variable, or of all. Plain data.
struct Clipping {
  enum class Kind {
    kNone,
    kByValue,       // each element into [-limit, limit]
    kByNorm,        // each variable whose norm is above the limit is scaled down to it
    kByGlobalNorm,  // all variables by the same factor, where the norm of all is above the limit
  };
  Kind kind = Kind::kNone;
  double limit = 0;

  // Whether no gradient is what it will be before all of them are there.
  bool NeedsAll() const { return kind == Kind::kByGlobalNorm; }

  // Clips the gradients of variables in place; where NeedsAll(), these must be those of all that
  // the optimizer updates. A norm that is not a finite number makes not-a-numbers, as in Keras.
  void Clip(const std::vector<std::span<float>>& gradients) const;
};

// Reads "clipvalue", "clipnorm" and "global_clipnorm", of which an optimizer may have one.
Clipping ReadClipping(KerasOptions& options);

}  // namespace shoal
