#pragma once

#include "common/model/ops/activation.h"

namespace shoal {

// Whether an activation is a ReLU whose derivative follows from its result y: 1 where 0 < y, and y
// is below the maximum if there is one. Otherwise 0.
inline bool IsPlainRelu(const ActivationAttributes& attributes) {
  return attributes.kind == ActivationAttributes::Kind::kRelu && attributes.negative_slope == 0 &&
         attributes.threshold == 0 && attributes.max_value != 0;
}

}  // namespace shoal
