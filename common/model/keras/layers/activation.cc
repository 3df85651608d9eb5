#include "absl/status/statusor.h"
#include "common/model/keras/activation_config.h"
#include "common/model/keras/layer_builder.h"

namespace shoal {

absl::StatusOr<ValueId> ReadActivation(LayerBuilder& layer) {
  return AddActivation(layer, layer.Option("activation"), layer.inputs()[0]);
}

}  // namespace shoal
