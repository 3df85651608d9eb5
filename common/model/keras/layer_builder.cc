#include "common/model/keras/layer_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/initializer_config.h"
#include "common/model/keras/layer_table.h"

namespace shoal {

LayerBuilder::LayerBuilder(Layer* layer, std::vector<ValueId> inputs, Graph* graph)
    : layer_(layer),
      inputs_(std::move(inputs)),
      graph_(graph),
      config_(layer->config, layer->type->class_name) {
  // Read for every layer elsewhere. A first layer of Keras 2 has batch_input_shape, which the
  // model's reader looks at.
  for (const char* common : {"name", "trainable", "dtype", "batch_input_shape"}) config_[common];
}

absl::Status LayerBuilder::ExpectImages() const {
  if (input_shape().size() == 4) return absl::OkStatus();
  return Invalid(absl::StrCat("takes images of shape (batch, height, width, channels), got ",
                              ShapeToString(input_shape())));
}

absl::Status LayerBuilder::ExpectChannelsLast() {
  const JsonNode format = Option("data_format");
  SHOAL_ASSIGN_OR_RETURN(const size_t index, format.OneOf({"channels_last", "channels_first"}, 0));
  if (index == 0) return absl::OkStatus();
  return format.Unimplemented(
      "Shoal has no \"channels_first\"; build the model with data_format=\"channels_last\"");
}

absl::StatusOr<ValueId> LayerBuilder::AddVariable(const std::string& name, Shape shape,
                                                  const std::string& initializer_key,
                                                  const std::string& default_initializer) {
  const JsonNode initializer_json = Option(initializer_key);
  if (const auto known = layer_->variables.find(name); known != layer_->variables.end()) {
    const Shape& first = graph_->value(known->second).shape;
    if (shape == first) return known->second;
    return Invalid(absl::StrCat("is shared, but its call on an input of shape ",
                                ShapeToString(input_shape()), " needs a ", name, " of shape ",
                                ShapeToString(shape), " and its first call made one of shape ",
                                ShapeToString(first)));
  }
  if (const absl::Status status = CheckElementCount(shape); !status.ok()) {
    return Invalid(absl::StrCat("its ", name, " is too large: ", std::string(status.message())));
  }
  SHOAL_ASSIGN_OR_RETURN(Initializer initializer,
                         ReadInitializer(initializer_json, default_initializer, shape));
  layer_->parameters += ElementCount(shape);
  const ValueId value = graph_->AddVariable({.name = absl::StrCat(layer_->name, "/", name),
                                             .shape = std::move(shape),
                                             .trainable = layer_->trainable,
                                             .initializer = initializer});
  layer_->variables[name] = value;
  return value;
}

absl::StatusOr<ValueId> LayerBuilder::Add(std::shared_ptr<const Op> op,
                                          std::vector<ValueId> inputs) {
  absl::StatusOr<ValueId> output = graph_->Add(std::move(op), std::move(inputs), layer_->name);
  if (output.ok()) return output;
  return absl::Status(output.status().code(), absl::StrCat(layer_->json.path(), ": ",
                                                           std::string(output.status().message())));
}

absl::Status LayerBuilder::Invalid(const std::string& message) const {
  return layer_->json.Invalid(
      absl::StrCat("layer \"", layer_->name, "\" (", layer_->type->class_name, ") ", message));
}

}  // namespace shoal
