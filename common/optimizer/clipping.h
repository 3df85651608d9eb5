#pragma once

#include <span>
#include <vector>

#include "common/json/keras_options.h"

namespace shoal {

// The first step of an update: clips gradients like Keras (keras/src/optimizers/base_optimizer.py).
// The worker does it, because it has the whole gradient: a norm covers a whole variable, or all of
// them. Plain data.
struct Clipping {
  enum class Kind {
    kNone,
    kByValue,       // clamps each element to [-limit, limit]
    kByNorm,        // scales down each variable whose norm exceeds the limit
    kByGlobalNorm,  // scales all variables by one factor if their joint norm exceeds the limit
  };
  Kind kind = Kind::kNone;
  double limit = 0;

  // Whether clipping any gradient needs all of them.
  bool NeedsAll() const { return kind == Kind::kByGlobalNorm; }

  // Clips the gradients of variables in place. If NeedsAll(), pass those of all variables that the
  // optimizer updates. A norm that is not finite gives not-a-number, as in Keras.
  void Clip(const std::vector<std::span<float>>& gradients) const;
};

// Reads "clipvalue", "clipnorm" and "global_clipnorm"; an optimizer may have at most one.
Clipping ReadClipping(KerasOptions& options);

}  // namespace shoal
