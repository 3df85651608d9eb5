#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "common/json/json_errors.h"
#include "common/json/keras_options.h"
#include "common/model/loss.h"
#include "common/model/training/expression.h"

namespace shoal {

// A loss as Keras configures it. Each class of Keras is one file here, made by the table in
// loss_table.cc; docs/contributing/adding-a-kind.md shows how to add one.
class KerasLoss : public Loss {
 public:
  const char* class_name() const override { return class_name_; }
  // The shape of the predictions.
  absl::StatusOr<Shape> TargetShape(const Shape& prediction) const override;

  // {"class_name": …, "config": …} with every option that affects a number; MakeLoss() reads it.
  // Canonical: equal losses give equal texts.
  const std::string& config() const { return config_; }

  // Whether it takes logits: a sigmoid of each model output is then a probability, or, for a loss
  // of classes, the softmax of a row.
  bool from_logits() const { return from_logits_; }

 protected:
  // Reads the options that all classes have. Subclasses read theirs afterwards.
  explicit KerasLoss(KerasOptions& options);

 private:
  friend std::unique_ptr<const KerasLoss> ReadLoss(const nlohmann::json&, const std::string&,
                                                   JsonErrors*);

  const char* class_name_ = "";
  std::string config_;
  bool from_logits_ = false;
};

// A loss that is a formula of predictions and target.
class FormulaLoss : public KerasLoss {
 public:
  absl::StatusOr<ValueId> AppendTo(Graph* graph, ValueId prediction, ValueId target) const final;

 protected:
  explicit FormulaLoss(KerasOptions& options) : KerasLoss(options) {}

  // The loss of each output, of each row of outputs, or of the whole batch. The loss of an example
  // is the mean of these.
  virtual Expression Formula(Expression prediction, Expression target) const = 0;
};

// A loss with one value per row: the last axis of the predictions is classes or the coordinates of
// a vector.
class RowLoss : public FormulaLoss {
 public:
  absl::StatusOr<Shape> TargetShape(const Shape& prediction) const override;
  Target target() const override { return Target::kValuePerClass; }

 protected:
  explicit RowLoss(KerasOptions& options) : FormulaLoss(options) {}
};

// keras.backend.epsilon()
inline constexpr double kLossEpsilon = 1e-7;

// Adds an error if `axis` is given and not -1.
void RejectOtherAxis(KerasOptions& options);

// "label_smoothing", from 0 to 1.
double ReadLabelSmoothing(KerasOptions& options);

// target (1 - smoothing) + smoothing / classes
Expression Smooth(Expression target, double smoothing, int64_t classes);

// Returns the input of the activation whose output is `value`: the logits of probabilities.
// kNoValue if `value` comes from another op.
ValueId LogitsOfSigmoid(const Graph& graph, ValueId value);
ValueId LogitsOfSoftmax(const Graph& graph, ValueId value);

// Reads the loss at `path`: a Keras config ({"class_name", "config"}) or a plain name ("mse"). Adds
// problems to `errors`; the result, null or not, is then meaningless.
std::unique_ptr<const KerasLoss> ReadLoss(const nlohmann::json& value, const std::string& path,
                                          JsonErrors* errors);

// The same from JSON text, such as Job::loss. kUnimplemented: Shoal lacks the class or option.
// Otherwise kInvalidArgument.
absl::StatusOr<std::shared_ptr<const KerasLoss>> MakeLoss(const std::string& text,
                                                          const std::string& path = "$.loss");

}  // namespace shoal
