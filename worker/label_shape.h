#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/base/shape.h"
#include "common/model/loss.h"

namespace shoal {

// Do labels of this shape (without the batch axis) suit the loss of this output (kBatch first)? As
// in Keras, a last axis of 1 may be there or not; the numbers and their order are the same. The
// error names the loss, both shapes, the label file and what would be right.
absl::Status CheckLabelShape(const Loss& loss, const Shape& output_shape, const Shape& label_shape,
                             const std::string& label_file);

}  // namespace shoal
