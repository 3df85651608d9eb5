#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/base/shape.h"
#include "worker/compute/model_runner.h"

namespace shoal {

// Sum over the examples of `metric`, each example's value averaged over its inner axes, as Keras
// does. `prediction` has the given shape, batch extent included; `target` as the loss takes it.
double MetricSum(Metric metric, const Shape& shape, std::span<const float> prediction,
                 std::span<const float> target);

// Whether every label is a whole number in [0, classes). If not, kInvalidArgument names the first
// example whose label is not, and the label. `labels` holds the same number of labels per example.
absl::Status CheckLabels(std::span<const float> labels, int64_t examples, int64_t classes);

}  // namespace shoal
