#include "common/model/keras/options/layer_options.h"

#include "absl/strings/str_cat.h"
#include "common/model/keras/options/activation_config.h"
#include "common/model/keras/options/dtype_config.h"

namespace shoal {

LayerOptions::LayerOptions(const LayerSource& layer, JsonErrors* errors)
    : KerasOptions({.class_name = layer.class_name,
                    .name_path = layer.json["class_name"].path(),
                    .plain_name = false,
                    .config = layer.json["config"].value(),
                    .config_path = layer.json["config"].path(),
                    .author = JsonAuthor::kKeras},
                   errors),
      json_(layer.json),
      path_(layer.traits.path + layer.name),
      traits_(layer.traits),
      activity_regularizer_{config()[""]} {
  // The name is known. The first layer of a Keras 2 model has batch_input_shape, which the model's
  // reader reads.
  for (const char* common : {"name", "batch_input_shape"}) Ignore(common);
  const JsonNode dtype = (*this)["dtype"];
  if (!layer.is_input) compute_dtype_ = Take(ReadDtypePolicy(dtype));
  const JsonNode regularizer = (*this)["activity_regularizer"];
  activity_regularizer_ = Take(ReadRegularizer(regularizer), {regularizer});
  trainable_ = Flag("trainable", true);
}

ModelTraits LayerOptions::traits_of_layers() const {
  ModelTraits traits = traits_;
  traits.path = path_.empty() ? "" : path_ + "/";
  return traits;
}

void LayerOptions::ExpectFalse(const char* key, const std::string& lack) {
  if (!Flag(key, false)) return;
  Take(config()[key].Unimplemented(lack + "; must be false"));
}

int64_t LayerOptions::Seed() {
  return Integer("seed", -1,
                 {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()});
}

std::array<int64_t, 2> LayerOptions::WindowExtents(const std::string& key,
                                                   std::optional<std::array<int64_t, 2>> absent,
                                                   int rank) {
  const std::array<int64_t, 2> otherwise = absent.value_or(std::array<int64_t, 2>{1, 1});
  JsonNode json = (*this)[key];
  if (rank == 2) return Take(json.Pair(kWindowExtents, absent), otherwise);
  if (json.is_array() && json.size() == 1) json = json.at(0);
  std::optional<int64_t> one;
  if (absent.has_value()) one = otherwise[1];
  return {1, Take(json.Integer(kWindowExtents, one), otherwise[1])};
}

Padding LayerOptions::WindowPadding(bool* causal) {
  std::vector<std::string> names = {"valid", "same"};
  if (causal != nullptr) names.push_back("causal");
  const size_t index = OneOf("padding", names, 0);
  if (causal != nullptr) *causal = index == 2;
  return index == 1 ? Padding::kSame : Padding::kValid;
}

AxisOption LayerOptions::Axis(const std::string& key, int64_t absent) {
  JsonNode json = (*this)[key];
  if (json.is_array() && json.size() == 1) json = json.at(0);
  if (json.is_array()) {
    Take(json.Unimplemented(
        absl::StrCat("Shoal takes one axis here, got ",
                     json.size() == 0 ? "[], which is what Keras writes of axis=None" : json.Text(),
                     "; use [-1], the last one")));
    return {json, absent};
  }
  return {json, Take(json.Integer(kAxes, absent), absent)};
}

void LayerOptions::ExpectChannelsLast() {
  if (OneOf("data_format", {"channels_last", "channels_first"}, 0) == 0) return;
  Take(config()["data_format"].Unimplemented(
      "Shoal has no \"channels_first\"; build the model with data_format=\"channels_last\""));
}

ResizeOp::Interpolation LayerOptions::Interpolation(const std::string& absent) {
  const JsonNode json = (*this)["interpolation"];
  const std::string name = Take(json.String(absent), absent);
  if (name == "nearest") return ResizeOp::Interpolation::kNearest;
  if (name != "bilinear") {
    Take(json.Unimplemented(absl::StrCat("Shoal has no interpolation ", json.Text(),
                                         SuggestName(name, {"bilinear", "nearest"}))));
  }
  return ResizeOp::Interpolation::kBilinear;
}

std::shared_ptr<const Op> LayerOptions::Activation(const std::string& key) {
  return Take(ReadActivation((*this)[key], traits_));
}

VariableOptions LayerOptions::Variable(const std::string& name,
                                       const std::string& default_initializer,
                                       const std::string& option) {
  const std::string& word = option.empty() ? name : option;
  const JsonNode initializer = (*this)[word + "_initializer"];
  const JsonNode regularizer = (*this)[word + "_regularizer"];
  return {.name = name,
          .initializer = Take(ReadInitializer(initializer, default_initializer), {initializer}),
          .regularizer = Take(ReadRegularizer(regularizer), {regularizer})};
}

VariableOptions LayerOptions::MovingAverage(const std::string& name,
                                            const std::string& default_initializer,
                                            double momentum) {
  const JsonNode json = (*this)[name + "_initializer"];
  return {.name = name,
          .initializer = Take(ReadInitializer(json, default_initializer), {json}),
          .regularizer = {config()[""]},
          .rule = UpdateRule::kMovingAverage,
          .momentum = momentum};
}

VariableOptions LayerOptions::Frozen(const std::string& name, const std::string& initializer) {
  // An option with an empty name is null, which selects the default.
  const JsonNode none = config()[""];
  return {.name = name,
          .initializer = Take(ReadInitializer(none, initializer), {none}),
          .regularizer = {none},
          .rule = UpdateRule::kFrozen};
}

std::optional<VariableOptions> LayerOptions::Bias() {
  const bool use_bias = Flag("use_bias", true);
  VariableOptions bias = Variable("bias", "zeros");  // Keras writes it without a bias too
  if (!use_bias) return std::nullopt;
  return bias;
}

}  // namespace shoal
