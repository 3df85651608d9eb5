#pragma once

#include "common/model/training_graph.h"
#include "tests/worker/compute/double_interpreter.h"

namespace shoal {

// Whether rounding could decide on which side of a jump the gradient is: a value of the model, as
// the interpreter's last run left it, is next to an end of a ReLU, or two values of a window of a
// MaxPool2D are next to each other and the largest.
bool IsNearAJump(const TrainingGraph& training, const DoubleInterpreter& interpreter);

}  // namespace shoal
