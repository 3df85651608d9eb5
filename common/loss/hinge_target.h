#pragma once

#include "common/model/training/expression.h"

namespace shoal {

// The target of a hinge loss, -1 or 1. If a batch has only 0 and 1, then 0 means -1:
// keras.src.losses.losses.convert_binary_labels_to_hinge.
inline Expression HingeTarget(Expression target) {
  const Expression others = SumOver(Abs(target * (target - 1)), {});
  const Expression is_binary = 1 - Sign(others);
  return target + is_binary * (target - 1);
}

}  // namespace shoal
