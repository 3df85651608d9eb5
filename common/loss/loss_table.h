#pragma once

#include <memory>

#include "common/json/keras_table.h"
#include "common/loss/keras_loss.h"

namespace shoal {

// All losses.
KerasTable<std::unique_ptr<KerasLoss>> LossTable();

}  // namespace shoal
