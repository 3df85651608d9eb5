#pragma once

#include <memory>

#include "common/json/keras_table.h"
#include "common/training_metric/metric.h"

namespace shoal {

// All metrics.
KerasTable<std::unique_ptr<Metric>> MetricTable();

}  // namespace shoal
