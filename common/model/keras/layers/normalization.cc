#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/options/number_list.h"
#include "common/model/ops/binary.h"
#include "common/model/ops/rescale.h"
#include "common/model/ops/unary.h"

namespace shoal {
namespace {

// The min deviation: Keras's backend.epsilon().
constexpr double kMinDeviation = 1e-7;

// Reads one number, or one per channel, which may be nested in lists of one for the axes before.
absl::StatusOr<std::vector<double>> ReadStatistics(JsonNode json) {
  while (json.is_array() && json.size() == 1) json = json.at(0);
  return ReadNumbers(json);
}

// Uses the statistics from its options, or those that it learnt from its data. Learnt statistics
// are variables that are never trained.
class Normalization : public LayerConfig {
 public:
  explicit Normalization(LayerOptions& options)
      : axis_(options.Axis("axis", -1)),
        mean_json_(options["mean"]),
        mean_(options.Frozen("mean", "zeros")),
        variance_(options.Frozen("variance", "ones")),
        count_(options.Frozen("count", "zeros")),
        invert_(options.Flag("invert", false)) {
    const JsonNode variance_json = options["variance"];
    if (mean_json_.is_null() && variance_json.is_null()) return;
    const std::vector<double> mean = options.Take(ReadStatistics(mean_json_));
    const std::vector<double> variance = options.Take(ReadStatistics(variance_json));
    constant_ = std::make_shared<RescaleOp>();
    constant_->scale.clear();
    for (const double v : variance) {
      if (v < 0) options.Take(variance_json.Invalid(absl::StrCat(v, " is negative")));
      const double deviation = std::max(std::sqrt(v), kMinDeviation);
      constant_->scale.push_back(invert_ ? deviation : 1 / deviation);
    }
    if (mean.size() != variance.size()) {
      options.Take(variance_json.Invalid(
          absl::StrCat("has ", variance.size(), " values, and mean has ", mean.size())));
      return;
    }
    constant_->offset.clear();
    for (size_t i = 0; i < mean.size(); ++i) {
      constant_->offset.push_back(invert_ ? mean[i] : -mean[i] * constant_->scale[i]);
    }
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectLastAxis(axis_, "Normalization"));
    if (constant_ != nullptr) return call.Add(constant_);
    const Shape channels = {call.input_shape().back()};
    SHOAL_ASSIGN_OR_RETURN(const ValueId mean, call.AddVariable(mean_, channels));
    SHOAL_ASSIGN_OR_RETURN(const ValueId variance, call.AddVariable(variance_, channels));
    SHOAL_RETURN_IF_ERROR(call.AddVariable(count_, {}).status());  // examples it adapted to
    auto root = std::make_shared<UnaryOp>();
    root->kind = UnaryOp::Kind::kSquareRoot;
    auto at_least = std::make_shared<UnaryOp>();
    at_least->kind = UnaryOp::Kind::kClip;
    at_least->low = kMinDeviation;
    at_least->high = std::numeric_limits<double>::infinity();
    SHOAL_ASSIGN_OR_RETURN(ValueId deviation, call.Add(std::move(root), {variance}));
    SHOAL_ASSIGN_OR_RETURN(deviation, call.Add(std::move(at_least), {deviation}));
    if (invert_) {
      SHOAL_ASSIGN_OR_RETURN(const ValueId spread,
                             Apply(call, BinaryOp::Kind::kMultiply, call.inputs()[0], deviation));
      return Apply(call, BinaryOp::Kind::kAdd, spread, mean);
    }
    SHOAL_ASSIGN_OR_RETURN(const ValueId centered,
                           Apply(call, BinaryOp::Kind::kSubtract, call.inputs()[0], mean));
    return Apply(call, BinaryOp::Kind::kDivide, centered, deviation);
  }

 private:
  static absl::StatusOr<ValueId> Apply(LayerCall& call, BinaryOp::Kind kind, ValueId a, ValueId b) {
    auto op = std::make_shared<BinaryOp>();
    op->kind = kind;
    return call.Add(std::move(op), {a, b});
  }

  const AxisOption axis_;
  const JsonNode mean_json_;
  const VariableOptions mean_;
  const VariableOptions variance_;
  const VariableOptions count_;
  const bool invert_;                    // computes x · deviation + mean
  std::shared_ptr<RescaleOp> constant_;  // null if the statistics are variables
};

}  // namespace

extern const LayerType kNormalizationLayer = {"Normalization", LayerType::Inputs::kOne,
                                              "(x − mean) / deviation of each channel, given or "
                                              "learnt of the data in Keras; `invert` the way "
                                              "back",
                                              ReadAs<Normalization>,
                                              LayerType::Integers::kAsNumbers};

}  // namespace shoal
