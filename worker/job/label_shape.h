#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/base/shape.h"
#include "common/model/loss.h"

namespace shoal {

// Checks that labels of this shape (without the batch axis) suit the loss of this output (kBatch
// first). As in Keras, a last axis of 1 is optional; the numbers and their order stay the same. The
// error names the loss, both shapes, the label file and the right shape.
absl::Status CheckLabelShape(const Loss& loss, const Shape& output_shape, const Shape& label_shape,
                             const std::string& label_file);

}  // namespace shoal
