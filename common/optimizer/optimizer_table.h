#pragma once

#include <memory>

#include "common/json/keras_table.h"
#include "common/optimizer/optimizer.h"

namespace shoal {

// All optimizers.
KerasTable<std::unique_ptr<Optimizer>> OptimizerTable();

}  // namespace shoal
