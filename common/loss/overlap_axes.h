#pragma once

#include <vector>

#include "common/loss/keras_loss.h"

namespace shoal {

// The option "axis" of Dice and Tversky: along which axes they sum, the batch's being 0. Null,
// which is empty here: along all.
std::vector<int64_t> ReadOverlapAxes(KerasOptions& options);

// The sums of `x` along them. An axis that x lacks is an error of the formula.
Expression SumAlong(Expression x, const std::vector<int64_t>& axes);

}  // namespace shoal
