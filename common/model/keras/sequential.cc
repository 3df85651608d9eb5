#include <string>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/json_errors.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/topology.h"

namespace shoal {
namespace {

// Shape of the input of a model that has no InputLayer: its first layer or the model itself, once
// built, says.
absl::StatusOr<Shape> ReadInputShape(const JsonNode& config, const Layer& first) {
  for (const JsonNode& shape :
       {first.config["batch_input_shape"], first.config["batch_shape"], config["build_input_shape"],
        first.json["build_config"]["input_shape"]}) {
    if (!shape.is_null()) return ReadBatchShape(shape);
  }
  return config.Invalid(
      absl::StrCat("the model does not say what its input looks like: it neither begins with an "
                   "InputLayer nor has build_input_shape; begin it with keras.Input(shape) before "
                   "layer \"",
                   first.name, "\", or build it before it is saved"));
}

// Reads a layer and calls it on `input`, the output of the layer before it. Where that is kNoValue,
// the layer is only checked, and the output is kNoValue as well.
absl::StatusOr<ValueId> AppendLayer(const JsonNode& config, const JsonNode& json, bool first,
                                    ValueId input, const ModelTraits& traits,
                                    std::unordered_set<std::string>* names, KerasModel* model) {
  SHOAL_ASSIGN_OR_RETURN(Layer layer, ReadLayer(json, traits));
  if (!names->insert(layer.name).second) {
    return layer.config["name"].Invalid(
        absl::StrCat("\"", layer.name, "\" is the name of an earlier layer; names must differ"));
  }
  const bool is_input = layer.type->inputs == LayerType::Inputs::kNone;
  if (is_input && !first) {
    return layer.json.Invalid("only the first layer of a Sequential model can be an InputLayer");
  }
  if (is_input) return CallLayer(layer, {}, &model->graph);
  if (first) {
    SHOAL_ASSIGN_OR_RETURN(Shape shape, ReadInputShape(config, layer));
    input = model->graph.AddInput(absl::StrCat(layer.name, "_input"), std::move(shape));
  }
  if (input == kNoValue) {
    SHOAL_RETURN_IF_ERROR(CheckWithoutInput(layer));
    return kNoValue;
  }
  SHOAL_ASSIGN_OR_RETURN(const ValueId output, CallLayer(layer, {input}, &model->graph));
  model->layers.push_back(Summarize(layer));
  return output;
}

}  // namespace

absl::Status ReadSequential(const JsonNode& config, const ModelTraits& traits, KerasModel* model) {
  ConfigReader options(config, "Sequential");
  for (const char* known : {"name", "trainable", "dtype", "build_input_shape"}) options[known];
  const JsonNode layers = options["layers"];
  SHOAL_RETURN_IF_ERROR(layers.ExpectArray());
  SHOAL_RETURN_IF_ERROR(options.RefuseUnread());
  if (layers.size() == 0) return layers.Invalid("a model needs at least one layer, got []");

  JsonErrors errors("");
  ValueId value = kNoValue;
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < layers.size(); ++i) {
    const absl::StatusOr<ValueId> output =
        AppendLayer(config, layers.at(i), i == 0, value, traits, &names, model);
    if (!output.ok()) errors.Add(output.status());
    value = output.value_or(kNoValue);
  }
  SHOAL_RETURN_IF_ERROR(errors.ToStatus());
  model->graph.SetOutputs({value});
  return absl::OkStatus();
}

}  // namespace shoal
