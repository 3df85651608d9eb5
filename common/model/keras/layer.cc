#include "common/model/keras/layer.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/json_errors.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/options/layer_options.h"

namespace shoal {
namespace {

// Far beyond any model that can be trained. Nested models that are called several times can reach
// it, because their calls multiply.
constexpr int64_t kMaxCalls = 100'000;
// Max bytes of a layer's name and those of the models around it.
constexpr size_t kMaxPathLength = 1000;

// Whether this is a function of keras.ops that the model calls. Keras writes it like a layer.
bool IsOperation(const JsonNode& json) {
  const std::string module = json["module"].String("").value_or("");
  return absl::StartsWith(module, "keras.src.ops.") || absl::StartsWith(module, "keras.ops.");
}

// Rejects operations that compute something else than the layer of the same name.
absl::Status RejectOtherOperation(const JsonNode& json, const std::string& class_name) {
  for (const char* alike :
       {"Add", "Concatenate", "Maximum", "Minimum", "Multiply", "Softmax", "Subtract"}) {
    if (class_name == alike) return absl::OkStatus();
  }
  return json["class_name"].Unimplemented(
      absl::StrCat("Shoal has no operation ", json["class_name"].Text(), " of ",
                   *json["module"].String(), "; use a layer that computes the same"));
}

absl::StatusOr<const LayerType*> ReadType(const JsonNode& json) {
  SHOAL_ASSIGN_OR_RETURN(const std::string class_name, json["class_name"].String());
  SHOAL_RETURN_IF_ERROR(json.ExpectKerasOwn());
  if (IsOperation(json)) SHOAL_RETURN_IF_ERROR(RejectOtherOperation(json, class_name));
  // Keras before 2.4 called Functional models "Model".
  const LayerType* type = FindLayerType(class_name == "Model" ? "Functional" : class_name);
  if (type != nullptr) return type;
  std::vector<std::string> names;
  for (const LayerType* known : LayerTypes()) names.push_back(known->class_name);
  return json["class_name"].Unimplemented(absl::StrCat(
      "Shoal has no layer ", json["class_name"].Text(), SuggestName(class_name, names)));
}

// Rejects penalties that depend on several examples, and those of a whole model.
void CheckActivityRegularizer(const LayerType& type, LayerOptions& options) {
  const RegularizerConfig& regularizer = options.activity_regularizer();
  if (!regularizer.regularizer.used()) return;
  if (regularizer.regularizer.orthogonal != 0) {
    options.Take(regularizer.json.Unimplemented(
        "outputs of examples cannot be held orthogonal to one another; use L1, L2 or L1L2"));
  }
  if (type.inputs == LayerType::Inputs::kOfModel || type.inputs == LayerType::Inputs::kAny) {
    options.Take(regularizer.json.Unimplemented(
        absl::StrCat(type.class_name,
                     " has no activity_regularizer here; give it to the layer whose output it "
                     "is")));
  }
}

absl::Status CheckInputs(const Layer& layer, size_t count) {
  const char* wanted = nullptr;
  switch (layer.type->inputs) {
    case LayerType::Inputs::kOfModel:
    case LayerType::Inputs::kOne:
      if (count != 1) wanted = "one input";
      break;
    case LayerType::Inputs::kSeveral:
      if (count < 1) wanted = "one or more inputs";
      break;
    case LayerType::Inputs::kAny:
      break;
  }
  if (wanted == nullptr) return absl::OkStatus();
  return layer.json.Invalid(absl::StrCat("layer \"", layer.name, "\" (", layer.type->class_name,
                                         ") takes ", wanted, ", got ", count));
}

// An operation aligns the last axes of its inputs, a layer the batches.
absl::Status CheckOperation(const Layer& layer, const std::vector<ValueId>& inputs,
                            const Graph& graph) {
  const Shape& first = graph.value(inputs[0]).shape;
  for (const ValueId input : inputs) {
    const Shape& shape = graph.value(input).shape;
    if (shape.size() == first.size()) continue;
    return layer.json.Unimplemented(
        absl::StrCat("operation \"", layer.name, "\" (", layer.type->class_name,
                     ") of inputs of shapes ", ShapeToString(first), " and ", ShapeToString(shape),
                     " lays the batch of one along another axis; use the layer keras.layers.",
                     layer.type->class_name, ", or inputs with as many axes"));
  }
  return absl::OkStatus();
}

// Rejects inputs of whole numbers from which Keras computes other numbers than Shoal's floats.
absl::Status CheckIntegers(const Layer& layer, const LayerCall& call) {
  using Integers = LayerType::Integers;
  switch (layer.type->integers) {
    case Integers::kComputed:
      return call.ExpectNoOverflow(call.inputs());
    case Integers::kRounded:
      return call.ExpectFloats();
    case Integers::kAsNumbers:
      break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Layer> ReadLayer(const JsonNode& json, const ModelTraits& traits) {
  SHOAL_RETURN_IF_ERROR(json.ExpectObject());
  SHOAL_ASSIGN_OR_RETURN(const LayerType* type, ReadType(json));
  SHOAL_RETURN_IF_ERROR(json["config"].ExpectObject());
  const JsonNode name_json = json["config"]["name"];
  SHOAL_ASSIGN_OR_RETURN(std::string name, name_json.String());
  if (name.empty()) return name_json.Invalid("a layer must have a name");
  if (traits.path.size() + name.size() > kMaxPathLength) {
    return name_json.Invalid(absl::StrCat("the names of a layer and of the models around it have ",
                                          kMaxPathLength, " bytes at most"));
  }
  return ReadLayer(json, *type, std::move(name), traits);
}

absl::StatusOr<Layer> ReadLayer(const JsonNode& json, const LayerType& type, std::string name,
                                const ModelTraits& traits) {
  JsonErrors errors("");
  LayerOptions options({.json = json,
                        .class_name = type.class_name,
                        .name = name,
                        .traits = traits,
                        .is_input = type.inputs == LayerType::Inputs::kOfModel},
                       &errors);
  std::unique_ptr<LayerConfig> config = type.read(options);
  CheckActivityRegularizer(type, options);
  SHOAL_RETURN_IF_ERROR(options.Finish());
  return Layer{.type = &type,
               .name = std::move(name),
               .path = options.path(),
               .json = json,
               .trainable = options.trainable(),
               .optimized = traits.optimized,
               .compute_dtype = options.compute_dtype(),
               .activity_regularizer = options.activity_regularizer().regularizer,
               .config = std::move(config)};
}

absl::StatusOr<ValueId> CallLayer(Layer& layer, const std::vector<ValueId>& inputs,
                                  GraphInProgress* graph) {
  SHOAL_RETURN_IF_ERROR(CheckInputs(layer, inputs.size()));
  if (IsOperation(layer.json)) {
    SHOAL_RETURN_IF_ERROR(CheckOperation(layer, inputs, graph->graph));
  }
  if (++graph->calls > kMaxCalls) {
    return layer.json.Invalid(
        absl::StrCat("the model calls its layers more than ", kMaxCalls, " times"));
  }
  LayerCall call(&layer, inputs, graph);
  SHOAL_RETURN_IF_ERROR(CheckIntegers(layer, call));
  const size_t variables_before = graph->graph.variables().size();
  SHOAL_ASSIGN_OR_RETURN(const ValueId output, layer.config->Call(call));
  const std::vector<Variable>& variables = graph->graph.variables();
  for (size_t i = variables_before; i < variables.size(); ++i) {
    layer.parameters += ElementCount(variables[i].shape);
  }
  // Each call adds its penalty. For a shared layer, Keras on JAX counts only the last call.
  if (layer.activity_regularizer.used()) {
    SHOAL_RETURN_IF_ERROR(call.ExpectNoOverflow({output}));
    graph->graph.AddActivityPenalty(output, layer.activity_regularizer);
  }
  if (layer.calls == 0) layer.output_shape = graph->graph.value(output).shape;
  ++layer.calls;
  return output;
}

}  // namespace shoal
