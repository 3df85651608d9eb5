#include "common/model/ops/dense.h"

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/bias.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> DenseOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 3));
  const Shape& x = inputs[0];
  const Shape& kernel = inputs[1];
  SHOAL_RETURN_IF_ERROR(CheckRank("kernel", kernel, 2));
  if (x.size() < 2 || x.back() != kernel[0]) {
    return absl::InvalidArgumentError(absl::StrCat("input of shape ", ShapeToString(x),
                                                   " does not fit the kernel of shape ",
                                                   ShapeToString(kernel)));
  }
  if (inputs.size() == 3) SHOAL_RETURN_IF_ERROR(CheckSameShape("bias", inputs[2], {kernel[1]}));
  Shape y = x;
  y.back() = kernel[1];
  return OneShape(y);
}

// The gradients of the variables come first. The worker can send them while it computes the
// input's.
absl::Status DenseOp::Gradient(GradientBuilder& builder) const {
  const ValueId dy = builder.output_gradient(0);
  if (builder.input_count() == 3) {
    SHOAL_RETURN_IF_ERROR(builder.AddInputGradient(2, std::make_shared<BiasBackwardOp>(), {dy}));
  }
  SHOAL_RETURN_IF_ERROR(builder.AddInputGradient(1, std::make_shared<DenseBackwardWeightsOp>(),
                                                 {builder.input(0), dy}));
  return builder.AddInputGradient(0, std::make_shared<DenseBackwardDataOp>(),
                                  {dy, builder.input(1)});
}

absl::StatusOr<std::vector<Shape>> DenseBackwardDataOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  const Shape& kernel = inputs[1];
  SHOAL_RETURN_IF_ERROR(CheckRank("kernel", kernel, 2));
  Shape dx = inputs[0];
  if (dx.empty() || dx.back() != kernel[1]) {
    return absl::InvalidArgumentError(absl::StrCat("gradient of shape ", ShapeToString(dx),
                                                   " does not fit the kernel of shape ",
                                                   ShapeToString(kernel)));
  }
  dx.back() = kernel[0];
  return OneShape(dx);
}

absl::StatusOr<std::vector<Shape>> DenseBackwardWeightsOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  const Shape& x = inputs[0];
  const Shape& dy = inputs[1];
  if (x.size() < 2 || dy.size() != x.size() || !std::equal(x.begin(), x.end() - 1, dy.begin())) {
    return absl::InvalidArgumentError(absl::StrCat("input of shape ", ShapeToString(x),
                                                   " does not fit the gradient of shape ",
                                                   ShapeToString(dy)));
  }
  return OneShape({x.back(), dy.back()});
}

}  // namespace shoal
