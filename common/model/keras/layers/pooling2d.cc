#include <memory>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_builder.h"
#include "common/model/keras/window_config.h"
#include "common/model/ops/pool2d.h"

namespace shoal {
namespace {

absl::StatusOr<ValueId> ReadPool2D(LayerBuilder& layer, Pool2DOp::Kind kind) {
  auto op = std::make_shared<Pool2DOp>();
  op->kind = kind;
  SHOAL_ASSIGN_OR_RETURN(op->window.size, layer.Option("pool_size").Pair(kWindowExtents, {{2, 2}}));
  SHOAL_ASSIGN_OR_RETURN(op->window.strides,
                         layer.Option("strides").Pair(kWindowExtents, op->window.size));
  SHOAL_ASSIGN_OR_RETURN(op->window.padding, ReadPadding(layer));
  SHOAL_RETURN_IF_ERROR(layer.ExpectChannelsLast());
  SHOAL_RETURN_IF_ERROR(layer.ExpectImages());
  return layer.Add(std::move(op), layer.inputs());
}

}  // namespace

absl::StatusOr<ValueId> ReadMaxPooling2D(LayerBuilder& layer) {
  return ReadPool2D(layer, Pool2DOp::Kind::kMax);
}

absl::StatusOr<ValueId> ReadAveragePooling2D(LayerBuilder& layer) {
  return ReadPool2D(layer, Pool2DOp::Kind::kAverage);
}

absl::StatusOr<ValueId> ReadGlobalAveragePooling2D(LayerBuilder& layer) {
  auto op = std::make_shared<GlobalAveragePool2DOp>();
  SHOAL_ASSIGN_OR_RETURN(op->keep_dims, layer.Option("keepdims").Bool(false));
  SHOAL_RETURN_IF_ERROR(layer.ExpectChannelsLast());
  SHOAL_RETURN_IF_ERROR(layer.ExpectImages());
  return layer.Add(std::move(op), layer.inputs());
}

}  // namespace shoal
