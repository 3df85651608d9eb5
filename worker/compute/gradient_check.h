#pragma once

namespace shoal {

// What is found of all gradients of a batch at once, where they are divided by the loss scale.
struct GradientCheck {
  float square_sum = 0;      // of the divided gradients
  float not_finite_sum = 0;  // 0: all are finite
};

}  // namespace shoal
