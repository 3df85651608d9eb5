#pragma once

namespace shoal {

// A check of all gradients of a batch at once, made when they are divided by the loss scale.
struct GradientCheck {
  float square_sum = 0;      // of the divided gradients
  float not_finite_sum = 0;  // 0 if all are finite
};

}  // namespace shoal
