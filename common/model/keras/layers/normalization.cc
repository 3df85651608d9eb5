#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/binary.h"
#include "common/model/ops/rescale.h"
#include "common/model/ops/unary.h"

namespace shoal {
namespace {

// Keras's backend.epsilon(): what a deviation is at least.
constexpr double kLeastDeviation = 1e-7;

// One number, or one per channel, in lists of one for the axes before it.
absl::StatusOr<std::vector<double>> ReadStatistics(JsonNode json) {
  while (json.is_array() && json.size() == 1) json = json.at(0);
  std::vector<double> numbers;
  if (!json.is_array()) {
    SHOAL_ASSIGN_OR_RETURN(numbers.emplace_back(), json.Number());
    return numbers;
  }
  for (size_t i = 0; i < json.size(); ++i) {
    SHOAL_ASSIGN_OR_RETURN(numbers.emplace_back(), json.at(i).Number());
  }
  return numbers;
}

// With the statistics that its options give, or those that it learnt of its data: then they are
// variables that are never trained.
class Normalization : public LayerConfig {
 public:
  explicit Normalization(LayerOptions& options)
      : axis_(options.Axis("axis", -1)),
        mean_json_(options["mean"]),
        mean_(options.Frozen("mean", "zeros")),
        variance_(options.Frozen("variance", "ones")),
        count_(options.Frozen("count", "zeros")) {
    const JsonNode variance_json = options["variance"];
    options.ExpectFalse("invert", "Shoal has the way there alone");
    if (mean_json_.is_null() && variance_json.is_null()) return;
    const std::vector<double> mean = options.Take(ReadStatistics(mean_json_));
    const std::vector<double> variance = options.Take(ReadStatistics(variance_json));
    constant_ = std::make_shared<RescaleOp>();
    constant_->scale.clear();
    for (const double v : variance) {
      if (v < 0) options.Take(variance_json.Invalid(absl::StrCat(v, " is negative")));
      constant_->scale.push_back(1 / std::max(std::sqrt(v), kLeastDeviation));
    }
    if (mean.size() != variance.size()) {
      options.Take(variance_json.Invalid(
          absl::StrCat("has ", variance.size(), " values, and mean has ", mean.size())));
      return;
    }
    constant_->offset.clear();
    for (size_t i = 0; i < mean.size(); ++i) {
      constant_->offset.push_back(-mean[i] * constant_->scale[i]);
    }
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectLastAxis(axis_, "Normalization"));
    if (constant_ != nullptr) return call.Add(constant_);
    const Shape channels = {call.input_shape().back()};
    SHOAL_ASSIGN_OR_RETURN(const ValueId mean, call.AddVariable(mean_, channels));
    SHOAL_ASSIGN_OR_RETURN(const ValueId variance, call.AddVariable(variance_, channels));
    SHOAL_RETURN_IF_ERROR(call.AddVariable(count_, {}).status());  // of what it has seen
    auto root = std::make_shared<UnaryOp>();
    root->kind = UnaryOp::Kind::kSquareRoot;
    auto at_least = std::make_shared<UnaryOp>();
    at_least->kind = UnaryOp::Kind::kClip;
    at_least->low = kLeastDeviation;
    at_least->high = std::numeric_limits<double>::infinity();
    auto subtract = std::make_shared<BinaryOp>();
    subtract->kind = BinaryOp::Kind::kSubtract;
    auto divide = std::make_shared<BinaryOp>();
    divide->kind = BinaryOp::Kind::kDivide;
    SHOAL_ASSIGN_OR_RETURN(ValueId deviation, call.Add(std::move(root), {variance}));
    SHOAL_ASSIGN_OR_RETURN(deviation, call.Add(std::move(at_least), {deviation}));
    SHOAL_ASSIGN_OR_RETURN(const ValueId centered,
                           call.Add(std::move(subtract), {call.inputs()[0], mean}));
    return call.Add(std::move(divide), {centered, deviation});
  }

 private:
  const AxisOption axis_;
  const JsonNode mean_json_;
  const VariableOptions mean_;
  const VariableOptions variance_;
  const VariableOptions count_;
  std::shared_ptr<RescaleOp> constant_;  // null where the statistics are variables
};

}  // namespace

extern const LayerType kNormalizationLayer = {
    "Normalization", LayerType::Inputs::kOne,
    "(x − mean) / deviation of each channel, given or learnt of the data in Keras",
    ReadAs<Normalization>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
