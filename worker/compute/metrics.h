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

// Whether every label, an element of batch.target, is a whole number in [0, classes). If not,
// kInvalidArgument names the first that is not and its example: by the file and its index there
// where the batch tells them, else by its place in the batch.
absl::Status CheckLabels(const Batch& batch, int64_t classes);

}  // namespace shoal
