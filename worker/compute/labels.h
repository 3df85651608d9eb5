#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/model/loss.h"
#include "worker/compute/model_runner.h"

namespace shoal {

// Whether every label, an element of batch.target, is one that `loss` takes from a model of so many
// outputs: a class number a whole number in [0, outputs), what is a probability in [0, 1], others
// finite. If not,
// kInvalidArgument names the first that is not and its example: by the file and its index there
// where the batch tells them, else by its place in the batch.
absl::Status CheckLabels(const Batch& batch, const Loss& loss, int64_t outputs);

}  // namespace shoal
