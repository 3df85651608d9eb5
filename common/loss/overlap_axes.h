#pragma once

#include <vector>

#include "common/loss/keras_loss.h"

namespace shoal {

// Reads the option "axis" of Dice and Tversky: the axes to sum along; axis 0 is the batch. Empty,
// for Keras's null, means all axes.
std::vector<int64_t> ReadOverlapAxes(KerasOptions& options);

// Sums `x` along these axes. An axis that x lacks is an error of the formula.
Expression SumAlong(Expression x, const std::vector<int64_t>& axes);

}  // namespace shoal
