#pragma once

#include <memory>

#include "common/json/keras_table.h"
#include "common/optimizer/optimizer.h"

namespace shoal {

// All of Keras's optimizers.
KerasTable<std::unique_ptr<Optimizer>> OptimizerTable();

// These, and those that only the ps of the strategy local apply.
KerasTable<std::unique_ptr<Optimizer>> OuterOptimizerTable();

}  // namespace shoal
