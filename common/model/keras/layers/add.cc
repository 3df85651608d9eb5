#include <memory>

#include "absl/status/statusor.h"
#include "common/model/keras/layer_builder.h"
#include "common/model/ops/add.h"

namespace shoal {

absl::StatusOr<ValueId> ReadAdd(LayerBuilder& layer) {
  return layer.Add(std::make_shared<AddOp>(), layer.inputs());
}

}  // namespace shoal
