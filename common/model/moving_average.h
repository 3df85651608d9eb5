#pragma once

#include <span>

namespace shoal {

// Computes the next values of a moving average: out = values * momentum + sample * (1 - momentum).
// As in Keras's BatchNormalization, the products are in float32, and 1 - momentum is computed
// before it is rounded to float32. `out` may be `values` itself but must not overlap it in part.
// `sample` may be unaligned. All have the same size.
void UpdateMovingAverage(double momentum, std::span<const float> sample,
                         std::span<const float> values, std::span<float> out);

}  // namespace shoal
