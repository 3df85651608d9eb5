#pragma once

#include <cstdint>
#include <memory>

#include "common/json/keras_options.h"
#include "common/optimizer/update.h"

namespace shoal {

// Keras's use_ema (keras/src/optimizers/base_optimizer.py): for each value a moving average over
// the updates,
//   average = momentum average + (1 - momentum) value,  with momentum 0 for the first update.
// Every overwrite_frequency updates the average replaces the value. Plain data.
struct WeightAverage {
  bool used = false;
  double momentum = 0.99;
  uint64_t overwrite_frequency = 0;  // 0: never
};

// Reads "use_ema", "ema_momentum" and "ema_overwrite_frequency".
WeightAverage ReadWeightAverage(KerasOptions& options);

// Update number `iteration`: runs `update`, then updates the average in the last slot, which
// `update` does not have.
std::unique_ptr<const Update> AveragingUpdate(const WeightAverage& average, uint64_t iteration,
                                              std::unique_ptr<const Update> update);

}  // namespace shoal
