#include "common/model/ops/dense.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

class Dense : public LayerConfig {
 public:
  explicit Dense(LayerOptions& options)
      : units_(options.RequiredInteger("units", kCounts)),
        kernel_(options.Variable("kernel", "glorot_uniform")),
        bias_(options.Bias()),
        activation_(options.Activation()) {}

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    const Shape& x = call.input_shape();
    if (x.size() < 2) {
      return call.Invalid(
          absl::StrCat("takes an input with an axis of features, got shape ", ShapeToString(x)));
    }
    std::vector<ValueId> inputs = call.inputs();
    SHOAL_ASSIGN_OR_RETURN(const ValueId kernel, call.AddVariable(kernel_, {x.back(), units_}));
    inputs.push_back(kernel);
    if (bias_.has_value()) {
      SHOAL_ASSIGN_OR_RETURN(const ValueId bias, call.AddVariable(*bias_, {units_}));
      inputs.push_back(bias);
    }
    SHOAL_ASSIGN_OR_RETURN(const ValueId y, call.Add(std::make_shared<DenseOp>(), inputs));
    return call.Activate(activation_, y);
  }

 private:
  const int64_t units_;
  const VariableOptions kernel_;
  const std::optional<VariableOptions> bias_;
  const std::shared_ptr<const Op> activation_;
};

}  // namespace

extern const LayerType kDenseLayer = {"Dense", LayerType::Inputs::kOne,
                                      "Fully connected along the last axis", ReadAs<Dense>,
                                      LayerType::Integers::kAsNumbers};

}  // namespace shoal
