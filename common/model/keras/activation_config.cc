#include "common/model/keras/activation_config.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/ops/softmax.h"

namespace shoal {
namespace {

using Kind = ActivationAttributes::Kind;

// Activations by Keras's name, with the constants that the name alone stands for.
struct NamedActivation {
  const char* name;
  ActivationAttributes attributes;
};
constexpr NamedActivation kActivations[] = {
    {"elu", {.kind = Kind::kElu, .negative_slope = 1}},
    {"exponential", {.kind = Kind::kExponential}},
    {"gelu", {.kind = Kind::kGelu}},
    {"hard_sigmoid", {.kind = Kind::kHardSigmoid}},
    {"leaky_relu", {.kind = Kind::kLeakyRelu, .negative_slope = 0.2}},
    {"relu", {.kind = Kind::kRelu}},
    {"relu6", {.kind = Kind::kRelu, .max_value = 6}},
    {"selu", {.kind = Kind::kSelu}},
    {"sigmoid", {.kind = Kind::kSigmoid}},
    {"silu", {.kind = Kind::kSilu}},
    {"softplus", {.kind = Kind::kSoftplus}},
    {"softsign", {.kind = Kind::kSoftsign}},
    {"swish", {.kind = Kind::kSilu}},
    {"tanh", {.kind = Kind::kTanh}},
};

absl::StatusOr<ValueId> AddNamed(LayerBuilder& layer, const JsonNode& name_json, ValueId x) {
  SHOAL_ASSIGN_OR_RETURN(const std::string name, name_json.String());
  if (name == "linear") return x;
  if (name == "softmax") return layer.Add(std::make_shared<SoftmaxOp>(), {x});
  if (name == "hard_sigmoid" && layer.traits().keras2) {
    return name_json.Unimplemented(
        "Shoal has Keras 3's \"hard_sigmoid\" only, and Keras 2's is another function");
  }
  std::vector<std::string> names = {"linear", "softmax"};
  for (const NamedActivation& known : kActivations) {
    names.push_back(known.name);
    if (name != known.name) continue;
    auto op = std::make_shared<ActivationOp>();
    op->attributes = known.attributes;
    return layer.Add(std::move(op), {x});
  }
  return name_json.Unimplemented(
      absl::StrCat("Shoal has no activation ", name_json.Text(), SuggestName(name, names)));
}

}  // namespace

absl::StatusOr<ValueId> AddActivation(LayerBuilder& layer, const JsonNode& activation, ValueId x) {
  if (activation.is_null()) return x;
  if (!activation.is_object()) return AddNamed(layer, activation, x);
  // {"class_name": "function", "config": "relu"}, or a layer in place of a function, or a bare
  // name.
  const JsonNode config = activation["config"];
  if (config.is_string()) return AddNamed(layer, config, x);
  SHOAL_ASSIGN_OR_RETURN(const std::string class_name, activation["class_name"].String());
  ConfigReader options(config, class_name);
  for (const char* common : {"name", "trainable"}) options[common];
  SHOAL_RETURN_IF_ERROR(CheckDtype(options["dtype"]));
  absl::StatusOr<ValueId> y = x;
  if (class_name == "ReLU") {
    auto op = std::make_shared<ActivationOp>();
    SHOAL_ASSIGN_OR_RETURN(op->attributes, ReadReluOptions(options));
    y = layer.Add(std::move(op), {x});
  } else {
    y = AddNamed(layer, activation["class_name"], x);
  }
  if (y.ok()) SHOAL_RETURN_IF_ERROR(options.RefuseUnread());
  return y;
}

absl::StatusOr<ActivationAttributes> ReadReluOptions(ConfigReader& config) {
  ActivationAttributes relu;
  if (const JsonNode max_value = config["max_value"]; !max_value.is_null()) {
    SHOAL_ASSIGN_OR_RETURN(relu.max_value, max_value.Number());
    if (relu.max_value < 0) return max_value.Invalid(absl::StrCat(relu.max_value, " is negative"));
  }
  const JsonNode slope = config["negative_slope"];
  SHOAL_ASSIGN_OR_RETURN(relu.negative_slope, slope.Number(0));
  if (relu.negative_slope < 0) {
    return slope.Invalid(absl::StrCat(relu.negative_slope, " is negative"));
  }
  SHOAL_ASSIGN_OR_RETURN(relu.threshold, config["threshold"].Number(0));
  if (relu.threshold < 0) {
    return config["threshold"].Invalid(absl::StrCat(relu.threshold, " is negative"));
  }
  return relu;
}

}  // namespace shoal
