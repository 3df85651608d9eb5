#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "worker/compute/model_runner.h"

namespace shoal {

// Whether every label, an element of batch.target, is a whole number in [0, classes). If not,
// kInvalidArgument names the first that is not and its example: by the file and its index there
// where the batch tells them, else by its place in the batch.
absl::Status CheckLabels(const Batch& batch, int64_t classes);

}  // namespace shoal
