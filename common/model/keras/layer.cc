#include "common/model/keras/layer.h"

#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_builder.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

constexpr IntegerRange kExtents = {1, std::numeric_limits<int32_t>::max()};

// A class that someone registered under a name of their own, or that lives in a module of their
// own, is not Keras's, whatever its class name.
absl::Status RefuseCustomClass(const JsonNode& json, const std::string& class_name) {
  SHOAL_ASSIGN_OR_RETURN(const std::string registered, json["registered_name"].String(class_name));
  SHOAL_ASSIGN_OR_RETURN(const std::string module, json["module"].String("keras"));
  if (absl::StrContains(registered, ">")) {
    return json["registered_name"].Unimplemented(
        absl::StrCat("Shoal has Keras's own layers only, no custom \"", registered, "\""));
  }
  if (module != "keras" && !absl::StartsWith(module, "keras.") &&
      !absl::StartsWith(module, "tensorflow.")) {
    return json["module"].Unimplemented(
        absl::StrCat("Shoal has Keras's own layers only, no \"", module, ".", class_name, "\""));
  }
  return absl::OkStatus();
}

absl::StatusOr<const LayerType*> ReadType(const JsonNode& json) {
  SHOAL_ASSIGN_OR_RETURN(const std::string class_name, json["class_name"].String());
  SHOAL_RETURN_IF_ERROR(RefuseCustomClass(json, class_name));
  const LayerType* type = FindLayerType(class_name);
  if (type != nullptr) return type;
  return json["class_name"].Unimplemented(absl::StrCat(
      "Shoal has no layer ", json["class_name"].Text(), SuggestName(class_name, LayerTypeNames())));
}

absl::Status CheckInputs(const Layer& layer, size_t count) {
  const LayerType::Inputs wanted = layer.type->inputs;
  const bool fits = wanted == LayerType::Inputs::kNone  ? count == 0
                    : wanted == LayerType::Inputs::kOne ? count == 1
                                                        : count >= 2;
  if (fits) return absl::OkStatus();
  return layer.json.Invalid(absl::StrCat("layer \"", layer.name, "\" (", layer.type->class_name,
                                         ") takes ",
                                         wanted == LayerType::Inputs::kNone  ? "no input"
                                         : wanted == LayerType::Inputs::kOne ? "one input"
                                                                             : "two or more inputs",
                                         ", got ", count));
}

}  // namespace

absl::StatusOr<Shape> ReadBatchShape(const JsonNode& json) {
  SHOAL_RETURN_IF_ERROR(json.ExpectArray());
  if (json.size() == 0) {
    return json.Invalid("needs the batch as its first extent, as in [null, 28, 28, 1], got []");
  }
  Shape shape;
  for (size_t i = 0; i < json.size(); ++i) {
    const JsonNode extent = json.at(i);
    if (i > 0 && extent.is_null()) {
      return extent.Unimplemented(
          "only the batch may have an unknown extent here; give the model a fixed input shape");
    }
    SHOAL_ASSIGN_OR_RETURN(const int64_t known, extent.Integer(kExtents, kBatch));
    shape.push_back(i == 0 ? kBatch : known);
  }
  if (const absl::Status status = CheckElementCount(shape); !status.ok()) {
    return json.Invalid(std::string(status.message()));
  }
  return shape;
}

absl::Status CheckDtype(const JsonNode& dtype) {
  const JsonNode name = dtype.is_object() ? dtype["config"]["name"] : dtype;
  SHOAL_ASSIGN_OR_RETURN(const std::string text, name.String("float32"));
  if (text == "float32") return absl::OkStatus();
  return name.Unimplemented(
      absl::StrCat("Shoal has no ", name.Text(), " layers; \"float32\" would be right"));
}

absl::StatusOr<Layer> ReadLayer(const JsonNode& json, const ModelTraits& traits) {
  SHOAL_RETURN_IF_ERROR(json.ExpectObject());
  SHOAL_ASSIGN_OR_RETURN(const LayerType* type, ReadType(json));
  const JsonNode config = json["config"];
  SHOAL_RETURN_IF_ERROR(config.ExpectObject());
  SHOAL_ASSIGN_OR_RETURN(std::string name, config["name"].String());
  if (name.empty()) return config["name"].Invalid("a layer must have a name");
  SHOAL_RETURN_IF_ERROR(CheckDtype(config["dtype"]));
  SHOAL_ASSIGN_OR_RETURN(const bool trainable, config["trainable"].Bool(true));
  return Layer{.type = type,
               .name = std::move(name),
               .json = json,
               .config = config,
               .traits = traits,
               .trainable = trainable && traits.trainable};
}

absl::StatusOr<ValueId> CallLayer(Layer& layer, const std::vector<ValueId>& inputs, Graph* graph) {
  SHOAL_RETURN_IF_ERROR(CheckInputs(layer, inputs.size()));
  LayerBuilder builder(&layer, inputs, graph);
  SHOAL_ASSIGN_OR_RETURN(const ValueId output, layer.type->read(builder));
  SHOAL_RETURN_IF_ERROR(builder.config().RefuseUnread());
  if (layer.calls == 0) layer.output_shape = graph->value(output).shape;
  ++layer.calls;
  return output;
}

// Shapes are mixed with options where a layer is read, so it is tried on inputs of several shapes:
// what is wrong with an option is the same for two of them, what is wrong with a shape names it.
absl::Status CheckWithoutInput(const Layer& layer) {
  const Shape guesses[] = {
      {kBatch, 960}, {kBatch, 1440}, {kBatch, 240, 240, 960}, {kBatch, 360, 360, 1440}};
  absl::Status before;
  for (const Shape& shape : guesses) {
    Graph graph;
    Layer tried = layer;
    const size_t count = layer.type->inputs == LayerType::Inputs::kNone  ? 0
                         : layer.type->inputs == LayerType::Inputs::kOne ? 1
                                                                         : 2;
    const std::vector<ValueId> inputs(count, graph.AddInput("guess", shape));
    const absl::Status status = CallLayer(tried, inputs, &graph).status();
    if (!status.ok() && status == before) return status;
    before = status;
  }
  return absl::OkStatus();
}

}  // namespace shoal
