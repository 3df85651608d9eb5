#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/golden_case/golden_case.h"
#include "common/base/status_macros.h"
#include "common/json/json_errors.h"
#include "common/json/json_object.h"
#include "common/json/json_text.h"
#include "common/loss/keras_loss.h"
#include "common/loss/weighted_reduction.h"

namespace shoal {
namespace {

using nlohmann::json;

// `weighted`: the case has example weights.
absl::Status ReadCaseFile(const std::string& path, bool weighted, GoldenCase* result) {
  SHOAL_ASSIGN_OR_RETURN(const std::string text, ReadJsonFile(path));
  SHOAL_ASSIGN_OR_RETURN(const json value, ParseJson(text, path));
  JsonErrors errors(path);
  JsonObject object(value, "$", &errors);
  const json* loss = object.Require("loss", "the loss, as a Keras config");
  const json* optimizers =
      object.Require("optimizers", "Keras configs by the prefix of their tensors");
  object.Require("steps", "how often each optimizer is applied");
  object.Require("relative_tolerance", "the largest relative error of outputs and gradients");
  object.Require("after_tolerance", "the largest relative error after the optimizers' steps");
  object.ReadInteger("steps", {.min = 1, .max = 1000}, &result->steps);
  const NumberRange tolerances = {.min = 0, .max = 1, .above_min = true};
  object.ReadNumber("relative_tolerance", tolerances, &result->relative_tolerance);
  object.ReadNumber("after_tolerance", tolerances, &result->after_tolerance);
  if (const json* weights = object.Find("class_weight"); weights != nullptr) {
    JsonObject by_class(*weights, "$.class_weight", &errors);
    for (const auto& [key, weight] : weights->items()) {
      int64_t of_class = 0;
      if (!absl::SimpleAtoi(key, &of_class)) by_class.AddWrong(key.c_str(), weight, "of a number");
      by_class.ReadNumber(key.c_str(), {.min = 0, .max = 1e9}, &result->class_weights[of_class]);
    }
  }
  if (loss != nullptr && (weighted || !result->class_weights.empty())) {
    CheckWeightedReduction(*loss, "$.loss", &errors);
  }
  if (optimizers != nullptr && !optimizers->is_object()) {
    object.AddWrong("optimizers", *optimizers, "an object of Keras configs");
  }
  SHOAL_RETURN_IF_ERROR(errors.ToStatus());
  for (const auto& [name, config] : optimizers->items()) {
    result->optimizers.push_back({name, config.dump()});
  }
  absl::StatusOr<std::shared_ptr<const Loss>> made = MakeLoss(loss->dump());
  if (!made.ok()) return WithSource(path, made.status());
  result->loss = *std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> ReadTensor(const std::string& name, GoldenCase* result) {
  const SafetensorsFile& file = *result->tensors;
  result->batch_tensors.insert(name);
  const TensorEntry* entry = file.Find(name);
  if (entry == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), ": there is no tensor \"", name, "\""));
  }
  return file.ReadFloats(*entry);
}

absl::Status ReadBatch(GoldenCase* result) {
  const Graph& graph = result->model.graph;
  const SafetensorsFile& file = *result->tensors;
  for (const ValueId input : graph.inputs()) {
    std::string name = absl::StrCat("input/", graph.value(input).name);
    if (graph.inputs().size() == 1 && file.Find(name) == nullptr) name = "input/x";
    SHOAL_ASSIGN_OR_RETURN(std::vector<float> values, ReadTensor(name, result));
    const Shape& shape = file.Find(name)->shape;
    if (!shape.empty()) result->examples = shape[0];
    result->inputs.push_back(std::move(values));
  }
  SHOAL_ASSIGN_OR_RETURN(result->target, ReadTensor("target", result));
  if (file.Find("sample_weight") != nullptr) {
    SHOAL_ASSIGN_OR_RETURN(result->weights, ReadTensor("sample_weight", result));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GoldenCase> GoldenCase::Load(const std::string& directory) {
  GoldenCase result;
  const std::string model_path = directory + "/model.json";
  SHOAL_ASSIGN_OR_RETURN(const std::string model_text, ReadJsonFile(model_path));
  absl::StatusOr<KerasModel> model = ParseKerasModel(model_text);
  if (!model.ok()) return WithSource(model_path, model.status());
  result.model = *std::move(model);
  SHOAL_ASSIGN_OR_RETURN(result.tensors, SafetensorsFile::Open(directory + "/case.safetensors"));
  const bool weighted = result.tensors->Find("sample_weight") != nullptr;
  SHOAL_RETURN_IF_ERROR(ReadCaseFile(directory + "/case.json", weighted, &result));
  SHOAL_RETURN_IF_ERROR(ReadBatch(&result));
  return result;
}

}  // namespace shoal
