#pragma once

#include <cstdint>

#include "common/model/ops/activation.h"
#include "worker/compute/op_math/bfloat16.h"

namespace shoal::cpu {

// y[i] = Activate(attributes, x[i]) (op_math/activation_functions.h), in vectors for the kinds that
// oneDNN lacks.
void ActivateLoop(const ActivationAttributes& attributes, const float* x, int64_t count, float* y);
void ActivateLoop(const ActivationAttributes& attributes, const BFloat16* x, int64_t count,
                  BFloat16* y);

// dx[i] = dy[i] * ActivationDerivative(attributes, x[i], y[i]), likewise.
void ActivateBackwardLoop(const ActivationAttributes& attributes, const float* x, const float* y,
                          const float* dy, int64_t count, float* dx);
void ActivateBackwardLoop(const ActivationAttributes& attributes, const BFloat16* x,
                          const BFloat16* y, const BFloat16* dy, int64_t count, BFloat16* dx);

}  // namespace shoal::cpu
