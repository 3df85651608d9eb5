#include <limits>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_builder.h"
#include "common/model/ops/softmax.h"

namespace shoal {

absl::StatusOr<ValueId> ReadSoftmax(LayerBuilder& layer) {
  JsonNode axis_json = layer.Option("axis");
  if (axis_json.is_array() && axis_json.size() == 1) axis_json = axis_json.at(0);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  SHOAL_ASSIGN_OR_RETURN(const int64_t axis, axis_json.Integer({-kMost, kMost}, -1));
  const int64_t last = static_cast<int64_t>(layer.input_shape().size()) - 1;
  if (axis != -1 && axis != last) {
    return axis_json.Unimplemented(
        absl::StrCat("Shoal has softmax along the last axis only; -1 would be right, got ", axis,
                     " for an input of shape ", ShapeToString(layer.input_shape())));
  }
  return layer.Add(std::make_shared<SoftmaxOp>(), layer.inputs());
}

}  // namespace shoal
