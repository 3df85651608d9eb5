#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "common/json/json_errors.h"
#include "common/json/keras_options.h"
#include "common/model/expression.h"
#include "common/model/loss.h"

namespace shoal {

// A loss as Keras configures it. Each class of Keras is one file here, made by the table in
// loss_table.cc; docs/contributing.md shows how one is added.
class KerasLoss : public Loss {
 public:
  const char* class_name() const override { return class_name_; }
  // That of the predictions.
  absl::StatusOr<Shape> TargetShape(const Shape& prediction) const override;

  // {"class_name": …, "config": …} with every option that changes a number: what MakeLoss() reads
  // back. Canonical: equal losses give equal texts.
  const std::string& config() const { return config_; }

  // Whether it takes logits: then a sigmoid of each value that the model puts out is a probability,
  // or, of a loss of classes, the softmax of a row.
  bool from_logits() const { return from_logits_; }

 protected:
  // Reads the options that all classes have; a class reads its own after it.
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

  // Loss of each output, or of each row of them, or of the whole batch; the mean of an example is
  // taken of that.
  virtual Expression Formula(Expression prediction, Expression target) const = 0;
};

// One whose formula is one of rows: the last axis of the predictions is that of classes or of a
// vector's coordinates.
class RowLoss : public FormulaLoss {
 public:
  absl::StatusOr<Shape> TargetShape(const Shape& prediction) const override;
  Target target() const override { return Target::kValuePerClass; }

 protected:
  explicit RowLoss(KerasOptions& options) : FormulaLoss(options) {}
};

// keras.backend.epsilon()
inline constexpr double kLossEpsilon = 1e-7;

// Adds an error where `axis` is given and not -1.
void RejectOtherAxis(KerasOptions& options);

// "label_smoothing", from 0 to 1.
double ReadLabelSmoothing(KerasOptions& options);

// target (1 - smoothing) + smoothing / classes
Expression Smooth(Expression target, double smoothing, int64_t classes);

// What `value` is the output of an activation of: the logits of probabilities. kNoValue: it comes
// from anything else.
ValueId LogitsOfSigmoid(const Graph& graph, ValueId value);
ValueId LogitsOfSoftmax(const Graph& graph, ValueId value);

// Reads a loss that stands at `path`: a Keras config ({"class_name", "config"}) or a plain name
// ("mse"). What is wrong is added to `errors`, and what is returned then, null or not, is of no
// use.
std::unique_ptr<const KerasLoss> ReadLoss(const nlohmann::json& value, const std::string& path,
                                          JsonErrors* errors);

// The same from JSON text, such as Job::loss. kUnimplemented: a class or option that Shoal lacks;
// else kInvalidArgument.
absl::StatusOr<std::shared_ptr<const KerasLoss>> MakeLoss(const std::string& text,
                                                          const std::string& path = "$.loss");

}  // namespace shoal
