#include "common/model/keras/options/activation_config.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/json_errors.h"
#include "common/json/keras_object.h"
#include "common/model/keras/options/dtype_config.h"
#include "common/model/keras_layers.h"
#include "common/model/ops/glu.h"
#include "common/model/ops/softmax.h"
#include "common/model/ops/sparsemax.h"

namespace shoal {
namespace {

using Kind = ActivationAttributes::Kind;

// An activation by Keras's name, with the constants that the name implies.
struct NamedActivation {
  const char* name;
  ActivationAttributes attributes;
};
constexpr NamedActivation kActivations[] = {
    {"celu", {.kind = Kind::kElu, .negative_slope = 1}},  // the name implies alpha 1
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

// An activation along the last axis.
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

// Returns the reader of the layer class, or null if no such layer is an activation.
using ActivationReader = ActivationAttributes (*)(KerasOptions& options);
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
  // A function {"class_name": "function", "config": "relu"}, a layer, or an object whose class name
  // is that of a function.
  SHOAL_ASSIGN_OR_RETURN(const KerasObject object, ReadModelPart(json));
  if (object.class_name == "function") return ReadNamed(json["config"], traits);
  JsonErrors errors("");
  KerasOptions options(object, &errors);
  for (const char* common : {"name", "trainable"}) options.Ignore(common);
  // It computes in the precision of the layer that it is in.
  options.Take(ReadDtypePolicy(options["dtype"]).status());
  std::shared_ptr<const Op> activation;
  if (const ActivationReader read = FindActivationLayer(object.class_name); read != nullptr) {
    auto op = std::make_shared<ActivationOp>();
    op->attributes = read(options);
    activation = std::move(op);
  } else {
    activation = options.Take(ReadNamed(json["class_name"], traits));
  }
  SHOAL_RETURN_IF_ERROR(options.Finish());
  return activation;
}

ActivationAttributes ReadRelu(KerasOptions& options) {
  ActivationAttributes relu;
  relu.max_value =
      options.NumberOrNull("max_value", {}, kNonNegativeNumbers).value_or(relu.max_value);
  relu.negative_slope = options.Number("negative_slope", 0, kNonNegativeNumbers);
  relu.threshold = options.Number("threshold", 0, kNonNegativeNumbers);
  return relu;
}

ActivationAttributes ReadLeakyRelu(KerasOptions& options) {
  ActivationAttributes leaky;
  leaky.kind = Kind::kLeakyRelu;
  // Keras 2 writes "alpha", Keras 3 "negative_slope".
  const double alpha = options.Number("alpha", 0.3, kAllNumbers);
  leaky.negative_slope = options.Number("negative_slope", alpha, kAllNumbers);
  return leaky;
}

ActivationAttributes ReadElu(KerasOptions& options) {
  ActivationAttributes elu;
  elu.kind = Kind::kElu;
  elu.negative_slope = options.Number("alpha", 1, kAllNumbers);
  return elu;
}

}  // namespace shoal
