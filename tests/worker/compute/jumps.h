#pragma once

#include "common/model/training/training_graph.h"
#include "tests/worker/compute/double_interpreter.h"

namespace shoal {

// Returns whether rounding could decide on which side of a jump the gradient is. This is so if a
// value of the interpreter's last run is close to an end of a ReLU, or if the two largest values in
// a window of a MaxPool2D are close to each other.
bool IsNearAJump(const TrainingGraph& training, const DoubleInterpreter& interpreter);

}  // namespace shoal
