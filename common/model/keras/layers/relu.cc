#include <memory>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/model/keras/activation_config.h"
#include "common/model/keras/layer_builder.h"
#include "common/model/ops/activation.h"

namespace shoal {

absl::StatusOr<ValueId> ReadReLU(LayerBuilder& layer) {
  auto op = std::make_shared<ActivationOp>();
  SHOAL_ASSIGN_OR_RETURN(op->attributes, ReadReluOptions(layer.config()));
  return layer.Add(std::move(op), layer.inputs());
}

}  // namespace shoal
