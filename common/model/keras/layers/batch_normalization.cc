#include "common/model/ops/batch_normalization.h"

#include <memory>
#include <vector>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

class BatchNormalization : public LayerConfig {
 public:
  explicit BatchNormalization(LayerOptions& options)
      : axis_(options.Axis("axis", -1)),
        momentum_(options.Number("momentum", 0.99, {.min = 0, .max = 1})),
        beta_(options.Variable("beta", "zeros")),
        gamma_(options.Variable("gamma", "ones")),
        mean_(options.MovingAverage("moving_mean", "zeros", momentum_)),
        variance_(options.MovingAverage("moving_variance", "ones", momentum_)) {
    op_.epsilon = options.Number("epsilon", 1e-3, kNonNegativeNumbers);
    op_.center = options.Flag("center", true);
    op_.scale = options.Flag("scale", true);
    options.ExpectFalse("renorm", "Shoal has no renormalisation");
    options.Ignore("renorm_momentum");  // has no effect without renorm
    options.ExpectFalse("synchronized", "Shoal takes the statistics of each worker's own batch");
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    const Shape& x = call.input_shape();
    SHOAL_RETURN_IF_ERROR(call.ExpectLastAxis(axis_, "BatchNormalization"));
    const Shape channels = {x.back()};
    std::vector<ValueId> parameters;  // in the order of Keras's weights
    if (op_.scale) {
      SHOAL_ASSIGN_OR_RETURN(parameters.emplace_back(), call.AddVariable(gamma_, channels));
    }
    if (op_.center) {
      SHOAL_ASSIGN_OR_RETURN(parameters.emplace_back(), call.AddVariable(beta_, channels));
    }
    SHOAL_ASSIGN_OR_RETURN(const ValueId mean, call.AddVariable(mean_, channels));
    SHOAL_ASSIGN_OR_RETURN(const ValueId variance, call.AddVariable(variance_, channels));
    auto op = std::make_shared<BatchNormalizationOp>(op_);
    op->frozen = !call.trainable();  // as in Keras, computes as in inference
    std::vector<ValueId> inputs = {call.inputs()[0], mean, variance};
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    SHOAL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, call.AddNode(std::move(op), inputs));
    SHOAL_RETURN_IF_ERROR(call.SetSample(mean_, mean, outputs[1]));
    SHOAL_RETURN_IF_ERROR(call.SetSample(variance_, variance, outputs[2]));
    return outputs[0];
  }

 private:
  const AxisOption axis_;
  const double momentum_;
  const VariableOptions beta_;
  const VariableOptions gamma_;
  const VariableOptions mean_;
  const VariableOptions variance_;
  BatchNormalizationOp op_;
};

}  // namespace

extern const LayerType kBatchNormalizationLayer = {
    "BatchNormalization", LayerType::Inputs::kOne,
    "Each channel of the last axis brought to mean beta and deviation gamma: of the batch in "
    "training, of moving averages in inference or where it is not trainable",
    ReadAs<BatchNormalization>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
