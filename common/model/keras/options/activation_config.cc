#include "common/model/keras/options/activation_config.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/json_errors.h"
#include "common/model/keras/options/dtype_config.h"
#include "common/model/keras_layers.h"
#include "common/model/ops/glu.h"
#include "common/model/ops/softmax.h"
#include "common/model/ops/sparsemax.h"

namespace shoal {
namespace {

using Kind = ActivationAttributes::Kind;

// Activations by Keras's name, with the constants that the name alone stands for.
struct NamedActivation {
  const char* name;
  ActivationAttributes attributes;
};
constexpr NamedActivation kActivations[] = {
    {"celu", {.kind = Kind::kElu, .negative_slope = 1}},  // of alpha 1, which a name stands for
    {"elu", {.kind = Kind::kElu, .negative_slope = 1}},
    {"exponential", {.kind = Kind::kExponential}},
    {"gelu", {.kind = Kind::kGelu}},
    {"hard_shrink", {.kind = Kind::kHardShrink, .threshold = 0.5}},
    {"hard_sigmoid", {.kind = Kind::kHardSigmoid}},
    {"hard_silu", {.kind = Kind::kHardSilu}},
    {"hard_swish", {.kind = Kind::kHardSilu}},
    {"hard_tanh", {.kind = Kind::kHardTanh}},
    {"leaky_relu", {.kind = Kind::kLeakyRelu, .negative_slope = 0.2}},
    {"log_sigmoid", {.kind = Kind::kLogSigmoid}},
    {"mish", {.kind = Kind::kMish}},
    {"relu", {.kind = Kind::kRelu}},
    {"relu6", {.kind = Kind::kRelu, .max_value = 6}},
    {"selu", {.kind = Kind::kSelu}},
    {"sigmoid", {.kind = Kind::kSigmoid}},
    {"silu", {.kind = Kind::kSilu}},
    {"soft_shrink", {.kind = Kind::kSoftShrink, .threshold = 0.5}},
    {"softplus", {.kind = Kind::kSoftplus}},
    {"softsign", {.kind = Kind::kSoftsign}},
    {"sparse_plus", {.kind = Kind::kSparsePlus}},
    {"sparse_sigmoid", {.kind = Kind::kHardSigmoid, .slope = 0.5}},
    {"squareplus", {.kind = Kind::kSquareplus}},
    {"swish", {.kind = Kind::kSilu}},
    {"tanh", {.kind = Kind::kTanh}},
    {"tanh_shrink", {.kind = Kind::kTanhShrink}},
};

// Those along the last axis.
struct NamedSoftmax {
  const char* name;
  SoftmaxOp::Kind kind;
};
constexpr NamedSoftmax kSoftmaxes[] = {{"log_softmax", SoftmaxOp::Kind::kLogSoftmax},
                                       {"softmax", SoftmaxOp::Kind::kSoftmax}};

absl::StatusOr<std::shared_ptr<const Op>> ReadNamed(const JsonNode& json,
                                                    const ModelTraits& traits) {
  SHOAL_ASSIGN_OR_RETURN(const std::string name, json.String());
  if (name == "linear") return nullptr;
  if (name == "glu") return std::make_shared<const GluOp>();
  if (name == "sparsemax") return std::make_shared<const SparsemaxOp>();
  for (const NamedSoftmax& known : kSoftmaxes) {
    if (name != known.name) continue;
    auto op = std::make_shared<SoftmaxOp>();
    op->kind = known.kind;
    return op;
  }
  if (name == "threshold") {
    return json.Unimplemented(
        "\"threshold\" takes two numbers that a model file does not give: Keras writes the name "
        "alone, and fails too when it computes such a model; a ReLU layer with \"threshold\" is "
        "that function with 0 below");
  }
  for (const NamedActivation& known : kActivations) {
    if (name != known.name) continue;
    auto op = std::make_shared<ActivationOp>();
    op->attributes = known.attributes;
    if (name == "hard_sigmoid" && traits.keras2) op->attributes.slope = 0.2;
    return op;
  }
  return json.Unimplemented(absl::StrCat("Shoal has no activation ", json.Text(),
                                         SuggestName(name, KerasActivationNames())));
}

// The layer of that class as an activation; null where none of them is.
using ActivationReader = absl::StatusOr<ActivationAttributes> (*)(ConfigReader& config);
ActivationReader FindActivationLayer(const std::string& class_name) {
  if (class_name == "ReLU") return ReadRelu;
  if (class_name == "LeakyReLU") return ReadLeakyRelu;
  if (class_name == "ELU") return ReadElu;
  return nullptr;
}

}  // namespace

std::vector<std::string> KerasActivationNames() {
  std::vector<std::string> names = {"glu", "linear", "sparsemax"};
  for (const NamedSoftmax& known : kSoftmaxes) names.push_back(known.name);
  for (const NamedActivation& known : kActivations) names.push_back(known.name);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::shared_ptr<const Op>> ReadActivation(const JsonNode& json,
                                                         const ModelTraits& traits) {
  if (json.is_null()) return nullptr;
  if (!json.is_object()) return ReadNamed(json, traits);
  // {"class_name": "function", "config": "relu"}, or a layer in place of a function, or a bare
  // name.
  SHOAL_RETURN_IF_ERROR(json.ExpectKerasOwn());
  const JsonNode config = json["config"];
  SHOAL_ASSIGN_OR_RETURN(const std::string class_name, json["class_name"].String());
  if (class_name == "function") return ReadNamed(config, traits);
  if (!config.is_null()) SHOAL_RETURN_IF_ERROR(config.ExpectObject());
  ConfigReader options(config, class_name);
  for (const char* common : {"name", "trainable"}) options[common];
  // It computes in the precision of the layer that it is in.
  SHOAL_RETURN_IF_ERROR(ReadDtypePolicy(options["dtype"]).status());
  std::shared_ptr<const Op> activation;
  if (const ActivationReader read = FindActivationLayer(class_name); read != nullptr) {
    auto op = std::make_shared<ActivationOp>();
    SHOAL_ASSIGN_OR_RETURN(op->attributes, read(options));
    activation = std::move(op);
  } else {
    SHOAL_ASSIGN_OR_RETURN(activation, ReadNamed(json["class_name"], traits));
  }
  SHOAL_RETURN_IF_ERROR(options.RefuseUnread());
  return activation;
}

absl::StatusOr<ActivationAttributes> ReadRelu(ConfigReader& config) {
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

absl::StatusOr<ActivationAttributes> ReadLeakyRelu(ConfigReader& config) {
  ActivationAttributes leaky;
  leaky.kind = Kind::kLeakyRelu;
  // Keras 3 and Keras 2.
  SHOAL_ASSIGN_OR_RETURN(const double alpha, config["alpha"].Number(0.3));
  SHOAL_ASSIGN_OR_RETURN(leaky.negative_slope, config["negative_slope"].Number(alpha));
  return leaky;
}

absl::StatusOr<ActivationAttributes> ReadElu(ConfigReader& config) {
  ActivationAttributes elu;
  elu.kind = Kind::kElu;
  SHOAL_ASSIGN_OR_RETURN(elu.negative_slope, config["alpha"].Number(1));
  return elu;
}

}  // namespace shoal
