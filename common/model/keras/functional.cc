#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/json/json_errors.h"
#include "common/model/keras/inbound_nodes.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/topology.h"

namespace shoal {
namespace {

// One call of a layer; a shared layer has several.
struct Call {
  size_t layer = 0;
  std::vector<TensorReference> reads = {};
  std::vector<size_t> sources = {};  // the calls that yield them
  std::vector<size_t> users = {};    // the calls that read this one's output, one entry a read
  ValueId output = kNoValue;
};

// A Functional model being read: layers, then calls, then the graph in topological order.
class FunctionalReader {
 public:
  FunctionalReader(const JsonNode& config, const ModelTraits& traits, KerasModel* model)
      : config_(config), traits_(traits), model_(model) {}

  absl::Status Read();

 private:
  absl::Status ReadLayers();
  absl::Status AppendLayer(const JsonNode& json);
  absl::Status ReadCalls(size_t layer);
  absl::Status Connect();
  absl::Status CallInputs();
  absl::Status CallOthers();
  // Calls the layer on what the call reads. Where that is not known, the layer is only checked, and
  // the output is kNoValue as well.
  absl::StatusOr<ValueId> CallOn(const Call& call);
  absl::Status SetOutputs();
  void FillSummaries();
  // The call that yields a tensor.
  absl::StatusOr<size_t> Find(const TensorReference& tensor) const;
  absl::Status CycleError() const;

  const JsonNode config_;
  const ModelTraits traits_;
  KerasModel* const model_;
  std::vector<Layer> layers_;                  // in the order of the JSON
  std::map<std::string, size_t> by_name_;      // layer's index
  std::vector<std::vector<size_t>> calls_of_;  // by layer
  std::vector<Call> calls_;                    // by layer, then in the order of its calls
};

absl::Status FunctionalReader::Read() {
  ConfigReader options(config_, "Functional");
  for (const char* known :
       {"name", "trainable", "dtype", "layers", "input_layers", "output_layers"}) {
    options[known];
  }
  SHOAL_RETURN_IF_ERROR(options.RefuseUnread());
  SHOAL_RETURN_IF_ERROR(ReadLayers());
  SHOAL_RETURN_IF_ERROR(Connect());
  SHOAL_RETURN_IF_ERROR(CallInputs());
  SHOAL_RETURN_IF_ERROR(CallOthers());
  SHOAL_RETURN_IF_ERROR(SetOutputs());
  FillSummaries();
  return absl::OkStatus();
}

absl::Status FunctionalReader::ReadLayers() {
  const JsonNode layers = config_["layers"];
  SHOAL_RETURN_IF_ERROR(layers.ExpectArray());
  JsonErrors errors("");
  for (size_t i = 0; i < layers.size(); ++i) {
    if (const absl::Status status = AppendLayer(layers.at(i)); !status.ok()) errors.Add(status);
  }
  if (errors.empty()) return absl::OkStatus();
  // The layers cannot be connected; each may have more to say.
  for (const Layer& layer : layers_) {
    if (const absl::Status status = CheckWithoutInput(layer); !status.ok()) errors.Add(status);
  }
  return errors.ToStatus();
}

absl::Status FunctionalReader::AppendLayer(const JsonNode& json) {
  SHOAL_ASSIGN_OR_RETURN(Layer layer, ReadLayer(json, traits_));
  if (!by_name_.emplace(layer.name, layers_.size()).second) {
    return layer.config["name"].Invalid(
        absl::StrCat("\"", layer.name, "\" is the name of an earlier layer; names must differ"));
  }
  layers_.push_back(std::move(layer));
  calls_of_.emplace_back();
  return ReadCalls(layers_.size() - 1);
}

absl::Status FunctionalReader::ReadCalls(size_t layer) {
  const auto add_call = [&](std::vector<TensorReference> reads) {
    calls_of_[layer].push_back(calls_.size());
    calls_.push_back({.layer = layer, .reads = std::move(reads)});
  };
  const JsonNode inbound = layers_[layer].json["inbound_nodes"];
  if (!inbound.is_null()) SHOAL_RETURN_IF_ERROR(inbound.ExpectArray());
  if (layers_[layer].type->inputs == LayerType::Inputs::kNone) {
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

absl::StatusOr<size_t> FunctionalReader::Find(const TensorReference& tensor) const {
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
  if (tensor.call >= static_cast<int64_t>(calls.size())) {
    return tensor.json.Invalid(absl::StrCat("layer \"", tensor.layer, "\" has ", calls.size(),
                                            calls.size() == 1 ? " call" : " calls",
                                            ", counted from 0; there is no call ", tensor.call));
  }
  return calls[tensor.call];
}

absl::Status FunctionalReader::Connect() {
  for (size_t i = 0; i < calls_.size(); ++i) {
    for (const TensorReference& tensor : calls_[i].reads) {
      SHOAL_ASSIGN_OR_RETURN(const size_t source, Find(tensor));
      calls_[i].sources.push_back(source);
      calls_[source].users.push_back(i);
    }
  }
  return absl::OkStatus();
}

// The model's inputs come first, in the order of input_layers: that is the order of a batch's
// arrays.
absl::Status FunctionalReader::CallInputs() {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<TensorReference> inputs,
                         ReadTensorReferences(config_["input_layers"]));
  for (const TensorReference& tensor : inputs) {
    SHOAL_ASSIGN_OR_RETURN(const size_t index, Find(tensor));
    Call& call = calls_[index];
    Layer& layer = layers_[call.layer];
    if (layer.type->inputs != LayerType::Inputs::kNone) {
      return tensor.json.Invalid(absl::StrCat("layer \"", layer.name, "\" is a ",
                                              layer.type->class_name, ", not an InputLayer"));
    }
    if (call.output != kNoValue) {
      return tensor.json.Invalid(absl::StrCat("input \"", layer.name, "\" is listed twice"));
    }
    SHOAL_ASSIGN_OR_RETURN(call.output, CallLayer(layer, {}, &model_->graph));
  }
  for (const Call& call : calls_) {
    const Layer& layer = layers_[call.layer];
    if (layer.type->inputs != LayerType::Inputs::kNone || call.output != kNoValue) continue;
    return layer.json.Invalid(absl::StrCat("InputLayer \"", layer.name, "\" is missing in ",
                                           config_["input_layers"].path()));
  }
  return absl::OkStatus();
}

// Of the calls that have all their inputs, the first in the JSON is next. Keras sorts its layers by
// depth, so that this is their order, and that of model.weights. A layer's own calls follow their
// numbers. Behind a call that fails, layers are only checked.
absl::Status FunctionalReader::CallOthers() {
  JsonErrors errors("");
  std::vector<bool> failed(layers_.size(), false);
  std::vector<size_t> missing(calls_.size());
  std::priority_queue<size_t, std::vector<size_t>, std::greater<size_t>> ready;
  for (size_t i = 0; i < calls_.size(); ++i) {
    missing[i] = calls_[i].sources.size();
    if (missing[i] == 0) ready.push(i);
  }
  size_t done = 0;
  for (; !ready.empty(); ++done) {
    const size_t index = ready.top();
    ready.pop();
    Call& call = calls_[index];
    if (call.output == kNoValue && !failed[call.layer]) {
      const absl::StatusOr<ValueId> output = CallOn(call);
      if (!output.ok()) errors.Add(output.status());
      failed[call.layer] = !output.ok();
      call.output = output.value_or(kNoValue);
    }
    for (const size_t user : call.users) {
      if (--missing[user] == 0) ready.push(user);
    }
  }
  SHOAL_RETURN_IF_ERROR(errors.ToStatus());
  return done == calls_.size() ? absl::OkStatus() : CycleError();
}

absl::StatusOr<ValueId> FunctionalReader::CallOn(const Call& call) {
  Layer& layer = layers_[call.layer];
  std::vector<ValueId> inputs;
  for (const size_t source : call.sources) {
    inputs.push_back(calls_[source].output);
    if (inputs.back() != kNoValue) continue;
    SHOAL_RETURN_IF_ERROR(CheckWithoutInput(layer));
    return kNoValue;
  }
  return CallLayer(layer, inputs, &model_->graph);
}

absl::Status FunctionalReader::SetOutputs() {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<TensorReference> outputs,
                         ReadTensorReferences(config_["output_layers"]));
  std::vector<ValueId> values;
  for (const TensorReference& tensor : outputs) {
    SHOAL_ASSIGN_OR_RETURN(const size_t call, Find(tensor));
    values.push_back(calls_[call].output);
  }
  model_->graph.SetOutputs(std::move(values));
  return absl::OkStatus();
}

void FunctionalReader::FillSummaries() {
  for (size_t i = 0; i < layers_.size(); ++i) {
    LayerSummary summary = Summarize(layers_[i]);
    for (const size_t call : calls_of_[i]) {
      for (const TensorReference& tensor : calls_[call].reads) {
        summary.connected_to.push_back(absl::StrCat(tensor.layer, "[", tensor.call, "][0]"));
      }
    }
    model_->layers.push_back(std::move(summary));
  }
}

// Every call that could not be made waits for another such: going from one to the next ends in a
// cycle.
absl::Status FunctionalReader::CycleError() const {
  const auto waits = [&](size_t call) { return calls_[call].output == kNoValue; };
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

}  // namespace

absl::Status ReadFunctional(const JsonNode& config, const ModelTraits& traits, KerasModel* model) {
  return FunctionalReader(config, traits, model).Read();
}

}  // namespace shoal
