#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/nearest_name.h"
#include "common/json/json_errors.h"
#include "common/model/keras/inbound_nodes.h"
#include "common/model/keras/input_layer.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/model_config.h"

namespace shoal {
namespace {

// One call of a layer; a shared layer has several.
struct CallNode {
  size_t layer = 0;
  std::vector<TensorReference> reads = {};
  std::vector<size_t> sources = {};  // calls that yield these tensors
  std::vector<size_t> users = {};    // calls that read this one's output, one entry for each read
};

// A Functional model: its layers, their calls and the connections between calls. It needs no values
// of inputs.
class Functional : public ModelConfig {
 public:
  explicit Functional(LayerOptions& options)
      : config_(options.config()), keras2_(options.traits().keras2) {
    options.Take(Read(options));
  }

  absl::StatusOr<std::vector<ModelInput>> Inputs() const override;
  absl::StatusOr<std::vector<ValueId>> CallLayers(const std::vector<ValueId>& inputs,
                                                  GraphInProgress* graph) override;
  std::vector<LayerSummary> Summaries() const override;

 private:
  absl::Status Read(LayerOptions& options);
  absl::Status ReadLayers(const JsonNode& layers, const ModelTraits& traits);
  absl::Status AppendLayer(const JsonNode& json, const ModelTraits& traits);
  absl::Status ReadCalls(size_t layer);
  absl::Status Connect();
  absl::Status FindInputs(const JsonNode& input_layers);
  absl::Status FindOutputs(const JsonNode& output_layers);
  absl::Status Sort();
  // Returns the call that yields a tensor.
  absl::StatusOr<size_t> Find(const TensorReference& tensor) const;
  // The number of the layer's first call, as `tensor` counts calls.
  int64_t FirstCall(const Layer& layer, const TensorReference& tensor) const;
  absl::Status CycleError(const std::vector<size_t>& missing) const;

  const JsonNode config_;
  const bool keras2_;
  std::vector<Layer> layers_;                  // in the order of the JSON
  std::map<std::string, size_t> by_name_;      // layer's index
  std::vector<std::vector<size_t>> calls_of_;  // by layer
  std::vector<CallNode> calls_;                // by layer, then in the order of its calls
  std::vector<size_t> inputs_;                 // calls of the InputLayers, in the model's order
  std::vector<size_t> order_;                  // an order in which the calls can run
  std::vector<size_t> outputs_;                // calls that yield the outputs
};

absl::Status Functional::Read(LayerOptions& options) {
  const JsonNode layers = options["layers"];
  const JsonNode inputs = options["input_layers"];
  const JsonNode outputs = options["output_layers"];
  SHOAL_RETURN_IF_ERROR(ReadLayers(layers, options.traits_of_layers()));
  SHOAL_RETURN_IF_ERROR(Connect());
  SHOAL_RETURN_IF_ERROR(FindInputs(inputs));
  SHOAL_RETURN_IF_ERROR(Sort());
  return FindOutputs(outputs);
}

absl::Status Functional::ReadLayers(const JsonNode& layers, const ModelTraits& traits) {
  SHOAL_RETURN_IF_ERROR(layers.ExpectArray());
  JsonErrors errors("");
  for (size_t i = 0; i < layers.size(); ++i) {
    if (const absl::Status status = AppendLayer(layers.at(i), traits); !status.ok()) {
      errors.Add(status);
    }
  }
  return errors.ToStatus();
}

absl::Status Functional::AppendLayer(const JsonNode& json, const ModelTraits& traits) {
  SHOAL_ASSIGN_OR_RETURN(Layer layer, ReadLayer(json, traits));
  if (!by_name_.emplace(layer.name, layers_.size()).second) {
    return json["config"]["name"].Invalid(
        absl::StrCat("\"", layer.name, "\" is the name of an earlier layer; names must differ"));
  }
  layers_.push_back(std::move(layer));
  calls_of_.emplace_back();
  return ReadCalls(layers_.size() - 1);
}

absl::Status Functional::ReadCalls(size_t layer) {
  const auto add_call = [&](std::vector<TensorReference> reads) {
    calls_of_[layer].push_back(calls_.size());
    calls_.push_back({.layer = layer, .reads = std::move(reads)});
  };
  const JsonNode inbound = layers_[layer].json["inbound_nodes"];
  if (!inbound.is_null()) SHOAL_RETURN_IF_ERROR(inbound.ExpectArray());
  if (IsInputLayer(layers_[layer])) {
    if (inbound.size() > 0) return inbound.Invalid("an InputLayer reads nothing; needs []");
    add_call({});
    return absl::OkStatus();
  }
  if (inbound.size() == 0) {
    return inbound.Invalid(absl::StrCat("layer \"", layers_[layer].name,
                                        "\" is never called: it has no inbound node"));
  }
  for (size_t i = 0; i < inbound.size(); ++i) {
    SHOAL_ASSIGN_OR_RETURN(std::vector<TensorReference> reads, ReadInboundNode(inbound.at(i)));
    if (reads.empty()) {
      return inbound.at(i).Invalid(
          absl::StrCat("layer \"", layers_[layer].name, "\" is called without an input"));
    }
    add_call(std::move(reads));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Functional::Find(const TensorReference& tensor) const {
  const auto layer = by_name_.find(tensor.layer);
  if (layer == by_name_.end()) {
    std::vector<std::string> names;
    for (const Layer& known : layers_) names.push_back(known.name);
    const std::string nearest = NearestName(tensor.layer, names);
    return tensor.json.Invalid(
        absl::StrCat("there is no layer ", tensor.json.at(0).Text(),
                     nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")));
  }
  const std::vector<size_t>& calls = calls_of_[layer->second];
  const int64_t first = FirstCall(layers_[layer->second], tensor);
  if (tensor.call < first || tensor.call - first >= static_cast<int64_t>(calls.size())) {
    return tensor.json.Invalid(absl::StrCat(
        "layer \"", tensor.layer, "\" has ", calls.size(), calls.size() == 1 ? " call" : " calls",
        ", counted from ", first, "; there is no call ", tensor.call));
  }
  return calls[tensor.call - first];
}

// Building a Functional model counts as its call 0. In Keras 2, so does building a Sequential model
// that begins with an InputLayer.
int64_t Functional::FirstCall(const Layer& layer, const TensorReference& tensor) const {
  if (tensor.calls_from_zero) return 0;
  if (layer.type == FindLayerType("Functional")) return 1;
  if (!keras2_ || layer.type != FindLayerType("Sequential")) return 0;
  const JsonNode first = layer.json["config"]["layers"].at(0)["class_name"];
  return first.String("").value_or("") == "InputLayer" ? 1 : 0;
}

absl::Status Functional::Connect() {
  for (size_t i = 0; i < calls_.size(); ++i) {
    for (const TensorReference& tensor : calls_[i].reads) {
      SHOAL_ASSIGN_OR_RETURN(const size_t source, Find(tensor));
      calls_[i].sources.push_back(source);
      calls_[source].users.push_back(i);
    }
  }
  return absl::OkStatus();
}

absl::Status Functional::FindInputs(const JsonNode& input_layers) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<TensorReference> tensors,
                         ReadTensorReferences(input_layers));
  std::set<size_t> listed;
  for (const TensorReference& tensor : tensors) {
    SHOAL_ASSIGN_OR_RETURN(const size_t call, Find(tensor));
    const Layer& layer = layers_[calls_[call].layer];
    if (!IsInputLayer(layer)) {
      return tensor.json.Invalid(absl::StrCat("layer \"", layer.name, "\" is a ",
                                              layer.type->class_name, ", not an InputLayer"));
    }
    if (!listed.insert(call).second) {
      return tensor.json.Invalid(absl::StrCat("input \"", layer.name, "\" is listed twice"));
    }
    inputs_.push_back(call);
  }
  for (size_t call = 0; call < calls_.size(); ++call) {
    const Layer& layer = layers_[calls_[call].layer];
    if (!IsInputLayer(layer) || listed.contains(call)) continue;
    return layer.json.Invalid(
        absl::StrCat("InputLayer \"", layer.name, "\" is missing in ", input_layers.path()));
  }
  return absl::OkStatus();
}

// Among the calls that have all their inputs, the first in the JSON comes next. Keras writes its
// layers sorted by depth, so this yields their order and that of model.weights. Calls of one layer
// are sorted by number.
absl::Status Functional::Sort() {
  std::vector<size_t> missing(calls_.size());
  std::priority_queue<size_t, std::vector<size_t>, std::greater<size_t>> ready;
  for (size_t i = 0; i < calls_.size(); ++i) {
    missing[i] = calls_[i].sources.size();
    if (missing[i] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const size_t call = ready.top();
    ready.pop();
    order_.push_back(call);
    for (const size_t user : calls_[call].users) {
      if (--missing[user] == 0) ready.push(user);
    }
  }
  return order_.size() == calls_.size() ? absl::OkStatus() : CycleError(missing);
}

absl::Status Functional::FindOutputs(const JsonNode& output_layers) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<TensorReference> tensors,
                         ReadTensorReferences(output_layers));
  for (const TensorReference& tensor : tensors) {
    SHOAL_ASSIGN_OR_RETURN(const size_t call, Find(tensor));
    outputs_.push_back(call);
  }
  return absl::OkStatus();
}

// Each call that cannot run waits for another such call. Following these calls therefore ends in a
// cycle.
absl::Status Functional::CycleError(const std::vector<size_t>& missing) const {
  const auto waits = [&](size_t call) { return missing[call] > 0; };
  size_t at = 0;
  while (!waits(at)) ++at;
  std::vector<bool> seen(calls_.size(), false);
  std::vector<size_t> path;
  while (!seen[at]) {
    seen[at] = true;
    path.push_back(at);
    const std::vector<size_t>& sources = calls_[at].sources;
    at = *std::find_if(sources.begin(), sources.end(), waits);
  }
  // `at` closes the cycle. The path went from readers to sources; the message goes the other way.
  std::string text = absl::StrCat("\"", layers_[calls_[at].layer].name, "\"");
  for (auto call = path.rbegin(); call != path.rend(); ++call) {
    absl::StrAppend(&text, " -> \"", layers_[calls_[*call].layer].name, "\"");
    if (*call == at) break;
  }
  return config_["layers"].Invalid(absl::StrCat("the layers form a cycle: ", text));
}

absl::StatusOr<std::vector<ModelInput>> Functional::Inputs() const {
  std::vector<ModelInput> inputs;
  for (const size_t call : inputs_) {
    const Layer& layer = layers_[calls_[call].layer];
    const auto& config = static_cast<const InputLayerConfig&>(*layer.config);
    inputs.push_back({layer.name, config.shape(), config.whole_numbers()});
  }
  return inputs;
}

// Reports the errors of all calls. Skips only calls that depend on a failed call, and further calls
// of a layer that failed.
absl::StatusOr<std::vector<ValueId>> Functional::CallLayers(const std::vector<ValueId>& inputs,
                                                            GraphInProgress* graph) {
  if (inputs.size() != inputs_.size()) {
    return config_.Invalid(absl::StrCat("the model has ", inputs_.size(),
                                        inputs_.size() == 1 ? " input" : " inputs",
                                        ", and is called on ", inputs.size()));
  }
  std::vector<std::vector<ValueId>> reads(calls_.size());
  for (size_t i = 0; i < inputs.size(); ++i) reads[inputs_[i]] = {inputs[i]};
  std::vector<ValueId> values(calls_.size(), kNoValue);
  std::vector<bool> failed(layers_.size(), false);
  JsonErrors errors("");
  for (const size_t index : order_) {
    const CallNode& call = calls_[index];
    for (const size_t source : call.sources) reads[index].push_back(values[source]);
    if (failed[call.layer]) continue;
    if (std::find(reads[index].begin(), reads[index].end(), kNoValue) != reads[index].end()) {
      continue;
    }
    const absl::StatusOr<ValueId> output = CallLayer(layers_[call.layer], reads[index], graph);
    if (!output.ok()) errors.Add(output.status());
    failed[call.layer] = !output.ok();
    values[index] = output.value_or(kNoValue);
  }
  SHOAL_RETURN_IF_ERROR(errors.ToStatus());
  std::vector<ValueId> outputs;
  for (const size_t call : outputs_) outputs.push_back(values[call]);
  return outputs;
}

std::vector<LayerSummary> Functional::Summaries() const {
  std::vector<LayerSummary> summaries;
  for (size_t i = 0; i < layers_.size(); ++i) {
    LayerSummary summary = Summarize(layers_[i]);
    for (const size_t call : calls_of_[i]) {
      for (const TensorReference& tensor : calls_[call].reads) {
        summary.connected_to.push_back(absl::StrCat(tensor.layer, "[", tensor.call, "][0]"));
      }
    }
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace

extern const LayerType kFunctionalLayer = {
    "Functional", LayerType::Inputs::kAny,
    "A model whose layers form any graph without cycles, alone or nested in another",
    ReadAs<Functional>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
