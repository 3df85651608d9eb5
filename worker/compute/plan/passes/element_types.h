#pragma once

#include "worker/compute/plan/fusion.h"
#include "worker/compute/plan/plan.h"

namespace shoal {

// Gives float32 to each node whose compute dtype the backend lacks, and to nodes that compute whole
// numbers such as ids. These stay exact under every policy, because they need more than 8 bits.
void ReplaceUnsupportedDtypes(const Supports& supports, Plan& plan);

// Sets the type of each value (Plan::element_type), after all fusions. The node's compute dtype is
// that of its first output, and of the gradient that a fused normalization passes on. Statistics,
// sums over rows, and values for the caller are float32.
void ChooseElementTypes(Plan& plan);

}  // namespace shoal
