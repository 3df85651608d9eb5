#pragma once

#include "common/loss/keras_loss.h"

namespace shoal {

// -t log p - (1 - t) log(1 - p). Both p and 1 - p are clipped to [1e-7, 1 - 1e-7]: otherwise
// float32 would keep only one digit of 1 - p.
inline Expression BinaryCrossentropyOf(Expression probability, Expression target) {
  const auto log = [](Expression p) { return Log(Clip(p, kLossEpsilon, 1 - kLossEpsilon)); };
  return -(target * log(probability) + (1 - target) * log(1 - probability));
}

}  // namespace shoal
