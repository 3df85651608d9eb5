#include "common/model/ops/bias.h"

#include "common/base/status_macros.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> BiasBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  if (inputs[0].size() < 2) return CheckRank("gradient", inputs[0], 2);
  return OneShape({inputs[0].back()});
}

}  // namespace shoal
