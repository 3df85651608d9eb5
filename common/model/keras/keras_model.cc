#include "common/model/keras_model.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/json_text.h"
#include "common/model/keras/json_node.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/topology.h"

namespace shoal {
namespace {

absl::Status ReadModel(const JsonNode& root, KerasModel* model) {
  SHOAL_RETURN_IF_ERROR(root.ExpectObject());
  SHOAL_ASSIGN_OR_RETURN(model->class_name, root["class_name"].String());
  const bool sequential = model->class_name == "Sequential";
  if (model->class_name == "Model") model->class_name = "Functional";  // by Keras before 2.4
  if (!sequential && model->class_name != "Functional") {
    return root["class_name"].Unimplemented(
        absl::StrCat(root["class_name"].Text(), " is no model that Shoal can read",
                     SuggestName(model->class_name, {"Sequential", "Functional"})));
  }
  const JsonNode config = root["config"];
  SHOAL_RETURN_IF_ERROR(config.ExpectObject());
  SHOAL_RETURN_IF_ERROR(CheckDtype(config["dtype"]));
  SHOAL_ASSIGN_OR_RETURN(model->name,
                         config["name"].String(sequential ? "sequential" : "functional"));
  SHOAL_ASSIGN_OR_RETURN(const std::string version, root["keras_version"].String("3"));
  ModelTraits traits;
  traits.keras2 = absl::StartsWith(version, "2.") || absl::StartsWith(version, "1.");
  SHOAL_ASSIGN_OR_RETURN(traits.trainable, config["trainable"].Bool(true));
  return sequential ? ReadSequential(config, traits, model) : ReadFunctional(config, traits, model);
}

}  // namespace

LayerSummary Summarize(const Layer& layer) {
  return {.name = layer.name,
          .class_name = layer.type->class_name,
          .output_shape = layer.output_shape,
          .parameters = layer.parameters,
          .connected_to = {}};
}

absl::StatusOr<KerasModel> ParseKerasModel(const std::string& json_text) {
  SHOAL_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(json_text, "model"));
  KerasModel model;
  SHOAL_RETURN_IF_ERROR(ReadModel(JsonNode(json), &model));
  return model;
}

}  // namespace shoal
