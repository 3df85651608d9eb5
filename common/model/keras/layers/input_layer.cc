#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_builder.h"

namespace shoal {

absl::StatusOr<ValueId> ReadInputLayer(LayerBuilder& layer) {
  for (const char* key : {"sparse", "ragged", "optional"}) {
    const JsonNode option = layer.Option(key);
    SHOAL_ASSIGN_OR_RETURN(const bool set, option.Bool(false));
    if (set) return option.Unimplemented("Shoal has dense inputs only; false would be right");
  }
  // Keras 3 and Keras 2.
  JsonNode shape = layer.Option("batch_shape");
  if (shape.is_null()) shape = layer.Option("batch_input_shape");
  SHOAL_ASSIGN_OR_RETURN(Shape extents, ReadBatchShape(shape));
  return layer.AddInput(std::move(extents));
}

}  // namespace shoal
