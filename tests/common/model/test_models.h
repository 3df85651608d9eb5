#pragma once

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/model/keras_model.h"
#include "tests/common/base/file_content.h"

// Keras models for tests, as JSON.

namespace shoal {

using Json = nlohmann::json;

inline std::string ReadText(const std::string& path) {
  return FileContent(std::string(SHOAL_SOURCE_DIR) + "/tests/" + path);
}

// Returns the names of the golden cases: all folders of tests/golden.
inline std::vector<std::string> GoldenCases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SHOAL_SOURCE_DIR "/tests/golden")) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns {"class_name": ..., "config": {"name": ..., ...config}}.
inline Json LayerJson(const std::string& class_name, const std::string& name, Json config) {
  config["name"] = name;
  return {{"class_name", class_name}, {"config", std::move(config)}};
}

// Returns a Sequential model with inputs of `batch_shape` ([null, ...]).
inline Json SequentialJson(const Json& batch_shape, const std::vector<Json>& layers) {
  Json all = Json::array({LayerJson("InputLayer", "input", {{"batch_shape", batch_shape}})});
  for (const Json& layer : layers) all.push_back(layer);
  return {{"class_name", "Sequential"}, {"config", {{"name", "model"}, {"layers", all}}}};
}

// Returns a layer of a Functional model in Keras 2's form, called once on the outputs of `inputs`.
inline Json CalledJson(Json layer, const std::vector<std::string>& inputs) {
  Json reads = Json::array();
  for (const std::string& input : inputs) reads.push_back({input, 0, 0, Json::object()});
  layer["name"] = layer["config"]["name"];
  layer["inbound_nodes"] = inputs.empty() ? Json::array() : Json::array({reads});
  return layer;
}

inline Json FunctionalJson(const std::vector<Json>& layers, const std::string& input,
                           const std::string& output) {
  return {{"class_name", "Functional"},
          {"config",
           {{"name", "model"},
            {"layers", layers},
            {"input_layers", Json::array({{input, 0, 0}})},
            {"output_layers", Json::array({{output, 0, 0}})}}}};
}

inline Shape OutputShape(const KerasModel& model) {
  return model.graph.value(model.graph.outputs()[0]).shape;
}

inline std::vector<std::string> NodeTypes(const Graph& graph) {
  std::vector<std::string> types;
  for (const Node& node : graph.nodes()) types.push_back(node.op->type());
  return types;
}

inline std::vector<std::string> VariableNames(const Graph& graph) {
  std::vector<std::string> names;
  for (const Variable& variable : graph.variables()) names.push_back(variable.name);
  return names;
}

}  // namespace shoal
