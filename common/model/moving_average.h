#pragma once

#include <span>

namespace shoal {

// The next values of a moving average: out = values * momentum + sample * (1 - momentum), as
// Keras's BatchNormalization has it: products of float32, and 1 - momentum taken before it is
// rounded to one. `out` may be `values` itself but otherwise does not overlap it; `sample` may be
// unaligned. All are of one size.
void UpdateMovingAverage(double momentum, std::span<const float> sample,
                         std::span<const float> values, std::span<float> out);

}  // namespace shoal
