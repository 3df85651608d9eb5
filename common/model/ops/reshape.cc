#include "common/model/ops/reshape.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {
namespace {

// The number of elements of one example, or of all if no batch leads.
int64_t CountElements(const Shape& shape) {
  const bool batch = !shape.empty() && shape[0] == kBatch;
  return ElementCount(Shape(shape.begin() + (batch ? 1 : 0), shape.end()));
}

}  // namespace

absl::StatusOr<std::vector<Shape>> ReshapeOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  SHOAL_RETURN_IF_ERROR(CheckElementCount(shape));
  if (shape.empty() || inputs[0].empty() || (shape[0] == kBatch) != (inputs[0][0] == kBatch) ||
      CountElements(shape) != CountElements(inputs[0])) {
    return absl::InvalidArgumentError(absl::StrCat("input of shape ", ShapeToString(inputs[0]),
                                                   " cannot be reshaped to ",
                                                   ShapeToString(shape)));
  }
  return OneShape(shape);
}

absl::Status ReshapeOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<ReshapeOp>();
  op->shape = builder.input_shape(0);
  return builder.AddInputGradient(0, op, {builder.output_gradient(0)});
}

}  // namespace shoal
