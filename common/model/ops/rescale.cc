#include "common/model/ops/rescale.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> RescaleOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  const Shape& x = inputs[0];
  for (const std::vector<double>* factors : {&scale, &offset}) {
    if (factors->size() == 1) continue;
    if (x.size() < 2 || static_cast<int64_t>(factors->size()) != x.back()) {
      return absl::InvalidArgumentError(absl::StrCat(
          factors == &scale ? "scale" : "offset", " has ", factors->size(),
          " values; it must have 1, or one per channel of the input of shape ", ShapeToString(x)));
    }
  }
  return OneShape(x);
}

absl::Status RescaleOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<RescaleOp>();
  op->scale = scale;
  return builder.AddInputGradient(0, op, {builder.output_gradient(0)});
}

}  // namespace shoal
