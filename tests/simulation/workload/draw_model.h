#pragma once

#include <cstdint>
#include <string>

#include "tests/simulation/random.h"

namespace shoal {

// Draws a Keras model of Dense layers, some with a BatchNormalization or a frozen layer. All
// variables begin at zero. Returns its JSON text.
std::string DrawModel(Random& random, uint64_t seed);

}  // namespace shoal
