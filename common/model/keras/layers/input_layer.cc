#include "common/model/keras/input_layer.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/options/dtype_config.h"

namespace shoal {

absl::StatusOr<Shape> ReadBatchShape(const JsonNode& json, bool nested) {
  SHOAL_RETURN_IF_ERROR(json.ExpectArray());
  if (json.size() == 0) {
    return json.Invalid("needs the batch as its first extent, as in [null, 28, 28, 1], got []");
  }
  Shape shape;
  Shape known;
  for (size_t i = 0; i < json.size(); ++i) {
    const JsonNode extent = json.at(i);
    if (i > 0 && extent.is_null() && !nested) {
      return extent.Unimplemented(
          "only the batch may have an unknown extent here; give the model a fixed input shape");
    }
    SHOAL_ASSIGN_OR_RETURN(const int64_t value, extent.Integer(kCounts, kAnyExtent));
    shape.push_back(i == 0 ? kBatch : value);
    if (shape.back() != kAnyExtent) known.push_back(shape.back());
  }
  if (const absl::Status status = CheckElementCount(known); !status.ok()) {
    return json.Invalid(std::string(status.message()));
  }
  return shape;
}

InputLayerConfig::InputLayerConfig(LayerOptions& options) {
  for (const char* key : {"sparse", "ragged", "optional"}) {
    options.ExpectFalse(key, "Shoal has dense inputs only");
  }
  whole_numbers_ = options.Take(ReadInputDtype(options["dtype"]));
  // Keras 3 writes "batch_shape", Keras 2 "batch_input_shape".
  JsonNode shape = options["batch_shape"];
  if (shape.is_null()) shape = options["batch_input_shape"];
  shape_ = options.Take(ReadBatchShape(shape, options.traits().nested()));
}

absl::StatusOr<ValueId> InputLayerConfig::Call(LayerCall& call) {
  const Shape& given = call.input_shape();
  bool fits = given.size() == shape_.size();
  for (size_t i = 0; fits && i < given.size(); ++i) {
    fits = given[i] == shape_[i] || shape_[i] == kAnyExtent;
  }
  if (fits) return call.inputs()[0];
  Shape shown = shape_;  // open extents print as None, as the batch does
  for (int64_t& extent : shown) {
    if (extent == kAnyExtent) extent = kBatch;
  }
  return call.Invalid(absl::StrCat("takes an input of shape ", ShapeToString(shown),
                                   ", and its model is called on one of shape ",
                                   ShapeToString(given)));
}

extern const LayerType kInputLayerLayer = {
    "InputLayer", LayerType::Inputs::kOfModel,
    "An input of the model, of float32 or of whole numbers (`dtype`)", ReadAs<InputLayerConfig>,
    LayerType::Integers::kAsNumbers};

}  // namespace shoal
