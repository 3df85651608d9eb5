#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/job/job.h"
#include "common/model/ops/loss.h"

namespace shoal {

// The engine's loss for a job's.
absl::StatusOr<LossAttributes> LossAttributesOf(const Job::Loss& loss);

// Do labels of this shape (without the batch axis) suit the loss of this output (kBatch first)? As
// in Keras, a last axis of 1 may be there or not; the numbers and their order are the same. The
// error names the loss, both shapes, the label file and what would be right.
absl::Status CheckLabels(const LossAttributes& loss, const Shape& output_shape,
                         const Shape& label_shape, const std::string& label_file);

}  // namespace shoal
