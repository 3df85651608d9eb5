#pragma once

#include "common/model/graph.h"

namespace shoal {

// Has branches, a normalization, and dropout, which draws by seed and step. A training step pushes
// the samples of the normalization and does not read its moving averages.
Graph SmallModel();

// Has no branches. Dropout draws by seed and step; a training step pushes the samples of the
// normalization.
Graph NormalizedModel();

}  // namespace shoal
