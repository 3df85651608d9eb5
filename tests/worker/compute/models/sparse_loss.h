#pragma once

#include "tests/common/loss/loss_of.h"

namespace shoal {

// The loss of the small models: labels are class ids, outputs are logits.
inline const auto kSparse = LossOf("SparseCategoricalCrossentropy", R"({"from_logits": true})");

}  // namespace shoal
