#include "common/model/ops/layer_normalization.h"

#include <memory>
#include <vector>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

class LayerNormalization : public LayerConfig {
 public:
  explicit LayerNormalization(LayerOptions& options)
      : axis_(options.Axis("axis", -1)),
        beta_(options.Variable("beta", "zeros")),
        gamma_(options.Variable("gamma", "ones")) {
    op_.epsilon = options.Number("epsilon", 1e-3, kNonNegativeNumbers);
    op_.center = options.Flag("center", true);
    op_.scale = options.Flag("scale", true);
    options.ExpectFalse("rms_scaling", "Shoal has the scaling by mean and deviation alone");
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectLastAxis(axis_, "LayerNormalization"));
    const Shape features = {call.input_shape().back()};
    std::vector<ValueId> inputs = call.inputs();
    if (op_.scale) {
      SHOAL_ASSIGN_OR_RETURN(inputs.emplace_back(), call.AddVariable(gamma_, features));
    }
    if (op_.center) {
      SHOAL_ASSIGN_OR_RETURN(inputs.emplace_back(), call.AddVariable(beta_, features));
    }
    SHOAL_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        call.AddNode(std::make_shared<LayerNormalizationOp>(op_), std::move(inputs)));
    return outputs[0];
  }

 private:
  const AxisOption axis_;
  const VariableOptions beta_;
  const VariableOptions gamma_;
  LayerNormalizationOp op_;
};

}  // namespace

extern const LayerType kLayerNormalizationLayer = {
    "LayerNormalization", LayerType::Inputs::kOne,
    "The last axis of each example brought to mean beta and deviation gamma",
    ReadAs<LayerNormalization>, LayerType::Integers::kRounded};

}  // namespace shoal
