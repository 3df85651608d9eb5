#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/model/loss.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {

// Checks that `loss` accepts every label (element of batch.target) for a model with this many
// outputs. A class number is a whole number in [0, outputs), a probability is in [0, 1], and any
// other label is finite. Otherwise kInvalidArgument (or kOutOfRange if the label is finite) names
// the first bad label and its example: by the file and its index there if the batch has them, else
// by its position in the batch.
absl::Status CheckLabels(const Batch& batch, const Loss& loss, int64_t outputs);

}  // namespace shoal
