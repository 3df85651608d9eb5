#include "common/model/keras_model.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/json_node.h"
#include "common/json/json_text.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/model_config.h"

namespace shoal {
namespace {

// The outer model, as a layer.
absl::StatusOr<Layer> ReadModelLayer(const JsonNode& root) {
  SHOAL_RETURN_IF_ERROR(root.ExpectObject());
  SHOAL_ASSIGN_OR_RETURN(std::string class_name, root["class_name"].String());
  SHOAL_RETURN_IF_ERROR(root.ExpectKerasOwn());
  const bool sequential = class_name == "Sequential";
  // Keras before 2.4 called Functional models "Model".
  if (!sequential && class_name != "Functional" && class_name != "Model") {
    return root["class_name"].Unimplemented(
        absl::StrCat(root["class_name"].Text(), " is no model that Shoal can read",
                     SuggestName(class_name, {"Sequential", "Functional"})));
  }
  const JsonNode config = root["config"];
  SHOAL_RETURN_IF_ERROR(config.ExpectObject());
  SHOAL_ASSIGN_OR_RETURN(std::string name,
                         config["name"].String(sequential ? "sequential" : "functional"));
  SHOAL_ASSIGN_OR_RETURN(const std::string version, root["keras_version"].String("3"));
  ModelTraits around;
  around.keras2 = absl::StartsWith(version, "2.") || absl::StartsWith(version, "1.");
  // Keras trains nothing of an outer model that is not trainable. A Sequential model loses this
  // flag when Keras reads it.
  SHOAL_ASSIGN_OR_RETURN(const bool trainable, config["trainable"].Bool(true));
  around.optimized = sequential || trainable;
  const LayerType* type = FindLayerType(sequential ? "Sequential" : "Functional");
  SHOAL_ASSIGN_OR_RETURN(Layer layer, ReadLayer(root, *type, "", around));
  layer.name = std::move(name);
  return layer;
}

absl::StatusOr<KerasModel> BuildModel(const Layer& layer) {
  auto& config = static_cast<ModelConfig&>(*layer.config);
  GraphInProgress building;
  SHOAL_ASSIGN_OR_RETURN(const std::vector<ModelInput> inputs, config.Inputs());
  std::vector<ValueId> values;
  for (const ModelInput& input : inputs) {
    values.push_back(building.graph.AddInput(input.name, input.shape, input.whole_numbers));
  }
  SHOAL_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, config.CallLayers(values, &building));
  building.graph.SetOutputs(std::move(outputs));
  return KerasModel{.name = layer.name,
                    .class_name = layer.type->class_name,
                    .graph = std::move(building.graph),
                    .layers = config.Summaries()};
}

}  // namespace

absl::StatusOr<KerasModel> ParseKerasModel(const std::string& json_text) {
  SHOAL_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(json_text, "model"));
  SHOAL_ASSIGN_OR_RETURN(const Layer layer, ReadModelLayer(JsonNode(json)));
  return BuildModel(layer);
}

}  // namespace shoal
