#pragma once

#include <functional>

#include "common/json/keras_options.h"

namespace shoal {

// The learning rate after so many updates: 0 before the first. As Keras has it; thread-safe.
using Schedule = std::function<double(double updates)>;

// Reads the option "learning_rate", a number (`otherwise` where it is not given) or a schedule of
// Keras.
Schedule ReadLearningRate(KerasOptions& options, double otherwise);

}  // namespace shoal
