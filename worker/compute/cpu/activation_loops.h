#pragma once

#include <cstdint>

#include "common/model/ops/activation.h"

namespace shoal::cpu {

// y[i] = Activate(attributes, x[i]) (op_math/activation_functions.h), in vectors for the kinds that
// oneDNN lacks.
void ActivateLoop(const ActivationAttributes& attributes, const float* x, int64_t count, float* y);

// dx[i] = dy[i] * ActivationDerivative(attributes, x[i], y[i]), likewise.
void ActivateBackwardLoop(const ActivationAttributes& attributes, const float* x, const float* y,
                          const float* dy, int64_t count, float* dx);

}  // namespace shoal::cpu
