#pragma once

#include <memory>

#include "common/json/keras_table.h"
#include "common/optimizer/optimizer.h"

namespace shoal {

// All of Keras's optimizers.
KerasTable<std::unique_ptr<Optimizer>> OptimizerTable();

// All of Keras's optimizers, and those only for the ps of the strategy local.
KerasTable<std::unique_ptr<Optimizer>> OuterOptimizerTable();

}  // namespace shoal
