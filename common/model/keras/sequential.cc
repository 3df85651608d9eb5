#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/input_layer.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/model_config.h"

namespace shoal {
namespace {

class Sequential : public ModelConfig {
 public:
  explicit Sequential(LayerOptions& options) : config_(options.config()) {
    const JsonNode built_shape = options["build_input_shape"];
    options.Take(ReadLayers(options["layers"], options));
    if (!layers_.empty()) options.Take(ReadInput(built_shape, options.traits_of_layers()));
  }

  absl::StatusOr<std::vector<ModelInput>> Inputs() const override;
  absl::StatusOr<std::vector<ValueId>> CallLayers(const std::vector<ValueId>& inputs,
                                                  GraphInProgress* graph) override;
  std::vector<LayerSummary> Summaries() const override;

 private:
  absl::Status ReadLayers(const JsonNode& layers, LayerOptions& options);
  absl::Status AppendLayer(const JsonNode& json, bool first, const ModelTraits& traits);
  absl::Status ReadInput(const JsonNode& built_shape, const ModelTraits& traits);

  const JsonNode config_;
  std::vector<Layer> layers_;
  std::unordered_set<std::string> names_;
  std::optional<ModelInput> input_;  // empty: the model does not define it
};

absl::Status Sequential::ReadLayers(const JsonNode& layers, LayerOptions& options) {
  SHOAL_RETURN_IF_ERROR(layers.ExpectArray());
  if (layers.size() == 0) return layers.Invalid("a model needs at least one layer, got []");
  for (size_t i = 0; i < layers.size(); ++i) {
    options.Take(AppendLayer(layers.at(i), i == 0, options.traits_of_layers()));
  }
  return absl::OkStatus();
}

absl::Status Sequential::AppendLayer(const JsonNode& json, bool first, const ModelTraits& traits) {
  SHOAL_ASSIGN_OR_RETURN(Layer layer, ReadLayer(json, traits));
  if (!names_.insert(layer.name).second) {
    return json["config"]["name"].Invalid(
        absl::StrCat("\"", layer.name, "\" is the name of an earlier layer; names must differ"));
  }
  if (IsInputLayer(layer) && !first) {
    return json.Invalid("only the first layer of a Sequential model can be an InputLayer");
  }
  layers_.push_back(std::move(layer));
  return absl::OkStatus();
}

// Finds the model's input. Without an InputLayer, the first layer defines it, or the model itself
// if it was built.
absl::Status Sequential::ReadInput(const JsonNode& built_shape, const ModelTraits& traits) {
  const Layer& first = layers_[0];
  if (IsInputLayer(first)) {
    const auto& config = static_cast<const InputLayerConfig&>(*first.config);
    input_ = {first.name, config.shape(), config.whole_numbers()};
    return absl::OkStatus();
  }
  const JsonNode config = first.json["config"];
  for (const JsonNode& json : {config["batch_input_shape"], config["batch_shape"], built_shape,
                               first.json["build_config"]["input_shape"]}) {
    if (json.is_null()) continue;
    SHOAL_ASSIGN_OR_RETURN(Shape shape, ReadBatchShape(json, traits.nested()));
    input_ = {absl::StrCat(first.name, "_input"), std::move(shape)};
    break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ModelInput>> Sequential::Inputs() const {
  if (input_.has_value()) return std::vector<ModelInput>{*input_};
  return config_.Invalid(
      absl::StrCat("the model does not define its input: it has neither an InputLayer nor "
                   "build_input_shape; begin it with keras.Input(shape) before layer \"",
                   layers_[0].name, "\", or build it before it is saved"));
}

absl::StatusOr<std::vector<ValueId>> Sequential::CallLayers(const std::vector<ValueId>& inputs,
                                                            GraphInProgress* graph) {
  std::vector<ValueId> values = inputs;
  for (Layer& layer : layers_) {
    SHOAL_ASSIGN_OR_RETURN(const ValueId output, CallLayer(layer, values, graph));
    values = {output};
  }
  return values;
}

std::vector<LayerSummary> Sequential::Summaries() const {
  std::vector<LayerSummary> summaries;
  for (const Layer& layer : layers_) {
    if (!IsInputLayer(layer)) summaries.push_back(Summarize(layer));
  }
  return summaries;
}

}  // namespace

extern const LayerType kSequentialLayer = {
    "Sequential", LayerType::Inputs::kAny,
    "A model whose layers follow one another, alone or nested in another", ReadAs<Sequential>,
    LayerType::Integers::kAsNumbers};

}  // namespace shoal
