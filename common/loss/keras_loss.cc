#include "common/loss/keras_loss.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/json_text.h"
#include "common/loss/loss_table.h"
#include "common/model/ops/activation.h"
#include "common/model/ops/reduce.h"
#include "common/model/ops/softmax.h"

namespace shoal {
namespace {

using nlohmann::json;

// All means that Keras has equal the mean over the batch if examples have no weights.
void ReadReduction(JsonObject& config) {
  const json* value = config.Find("reduction");
  if (value == nullptr || value->is_null()) return;
  for (const char* mean : {"sum_over_batch_size", "auto", "mean", "mean_with_sample_weight"}) {
    if (*value == mean) return;
  }
  config.errors()->AddUnimplemented(
      config.PathOf("reduction"),
      absl::StrCat("is ", ShortJson(*value),
                   "; Shoal averages the loss over the batch, so this must be "
                   "\"sum_over_batch_size\" or left out"));
}

// Keras computes a loss in the configured dtype; Shoal computes in float32.
void RejectOtherDtype(JsonObject& config) {
  const json* value = config.Find("dtype");
  if (value == nullptr || value->is_null() || *value == "float32") return;
  if (value->is_object() && value->contains("config")) {
    const json& inner = (*value)["config"];
    if (inner.is_object() && inner.value("name", json()) == "float32") return;
  }
  config.errors()->AddUnimplemented(
      config.PathOf("dtype"),
      absl::StrCat("is ", ShortJson(*value), "; Shoal computes losses in \"float32\""));
}

const Node* ProducerOf(const Graph& graph, ValueId value) {
  for (const Node& node : graph.nodes()) {
    if (node.outputs[0] == value) return &node;
  }
  return nullptr;
}

}  // namespace

KerasLoss::KerasLoss(KerasOptions& options) {
  // Keras 2 writes "fn" into the configs of its wrapped functions; the table reads it.
  options.Ignore("fn");
  ReadReduction(options.given());
  RejectOtherDtype(options.given());
}

absl::StatusOr<Shape> KerasLoss::TargetShape(const Shape& prediction) const {
  if (!prediction.empty()) return prediction;
  return absl::InvalidArgumentError(absl::StrCat("the loss ", class_name(),
                                                 " needs predictions for each example of a batch, "
                                                 "got shape ",
                                                 ShapeToString(prediction)));
}

absl::StatusOr<ValueId> FormulaLoss::AppendTo(Graph* graph, ValueId prediction,
                                              ValueId target) const {
  FormulaContext context(graph, "loss");
  const Expression expected = {&context, target};
  Expression loss = Formula({&context, prediction}, expected);
  if (context.status().ok() && loss.shape()[0] != expected.shape()[0])
    loss = RepeatForExamples(loss, expected);
  loss = MeanOfExamples(loss);
  SHOAL_RETURN_IF_ERROR(context.status());
  return loss.id;
}

absl::StatusOr<Shape> RowLoss::TargetShape(const Shape& prediction) const {
  if (prediction.size() >= 2) return prediction;
  return absl::InvalidArgumentError(absl::StrCat("the loss ", class_name(),
                                                 " needs predictions with an axis of classes, got "
                                                 "shape ",
                                                 ShapeToString(prediction)));
}

void RejectOtherAxis(KerasOptions& options) {
  const json* value = options.given().Find("axis");
  if (value == nullptr || *value == -1) return;
  options.given().errors()->AddUnimplemented(options.given().PathOf("axis"),
                                             absl::StrCat("is ", ShortJson(*value),
                                                          "; classes must lie along the last "
                                                          "axis, so this must be -1 or left out"));
}

double ReadLabelSmoothing(KerasOptions& options) {
  return options.Number("label_smoothing", 0, {.min = 0, .max = 1});
}

Expression Smooth(Expression target, double smoothing, int64_t classes) {
  if (smoothing == 0) return target;
  return (1 - smoothing) * target + smoothing / static_cast<double>(classes);
}

ValueId LogitsOfSigmoid(const Graph& graph, ValueId value) {
  const Node* node = ProducerOf(graph, value);
  if (node == nullptr) return kNoValue;
  const auto* op = dynamic_cast<const ActivationOp*>(node->op.get());
  const bool sigmoid = op != nullptr && op->attributes.kind == ActivationAttributes::Kind::kSigmoid;
  return sigmoid ? node->inputs[0] : kNoValue;
}

ValueId LogitsOfSoftmax(const Graph& graph, ValueId value) {
  const Node* node = ProducerOf(graph, value);
  const auto* softmax = node == nullptr ? nullptr : dynamic_cast<const SoftmaxOp*>(node->op.get());
  if (softmax == nullptr || softmax->kind != SoftmaxOp::Kind::kSoftmax) return kNoValue;
  return node->inputs[0];
}

std::unique_ptr<const KerasLoss> ReadLoss(const json& value, const std::string& path,
                                          JsonErrors* errors) {
  auto read = LossTable().Read(value, path, errors);
  if (!read.has_value()) return nullptr;
  std::unique_ptr<KerasLoss> loss = std::move(read->made);
  loss->class_name_ = read->class_name;
  loss->config_ = read->canonical.dump();
  loss->from_logits_ = read->canonical["config"].value("from_logits", false);
  return loss;
}

absl::StatusOr<std::shared_ptr<const KerasLoss>> MakeLoss(const std::string& text,
                                                          const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(const json value, ParseJson(text, path));
  JsonErrors errors("");
  std::shared_ptr<const KerasLoss> loss = ReadLoss(value, path, &errors);
  SHOAL_RETURN_IF_ERROR(errors.ToStatus());
  return loss;
}

}  // namespace shoal
