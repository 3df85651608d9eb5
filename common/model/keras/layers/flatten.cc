#include <memory>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_builder.h"
#include "common/model/ops/reshape.h"

namespace shoal {

absl::StatusOr<ValueId> ReadFlatten(LayerBuilder& layer) {
  SHOAL_RETURN_IF_ERROR(layer.ExpectChannelsLast());
  const Shape& x = layer.input_shape();
  auto op = std::make_shared<ReshapeOp>();
  op->shape = {kBatch, ElementCount(Shape(x.begin() + 1, x.end()))};
  if (op->shape == x) return layer.inputs()[0];
  return layer.Add(std::move(op), layer.inputs());
}

}  // namespace shoal
