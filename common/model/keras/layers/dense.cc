#include <limits>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/activation_config.h"
#include "common/model/keras/layer_builder.h"
#include "common/model/ops/dense.h"

namespace shoal {

absl::StatusOr<ValueId> ReadDense(LayerBuilder& layer) {
  SHOAL_ASSIGN_OR_RETURN(const int64_t units,
                         layer.Option("units").Integer({1, std::numeric_limits<int32_t>::max()}));
  SHOAL_ASSIGN_OR_RETURN(const bool use_bias, layer.Option("use_bias").Bool(true));
  const Shape& x = layer.input_shape();
  if (x.size() < 2) {
    return layer.Invalid(
        absl::StrCat("takes an input with an axis of features, got shape ", ShapeToString(x)));
  }
  std::vector<ValueId> inputs = layer.inputs();
  SHOAL_ASSIGN_OR_RETURN(
      const ValueId kernel,
      layer.AddVariable("kernel", {x.back(), units}, "kernel_initializer", "glorot_uniform"));
  inputs.push_back(kernel);
  layer.Option("bias_initializer");  // Keras writes it without a bias too
  if (use_bias) {
    SHOAL_ASSIGN_OR_RETURN(const ValueId bias,
                           layer.AddVariable("bias", {units}, "bias_initializer", "zeros"));
    inputs.push_back(bias);
  }
  SHOAL_ASSIGN_OR_RETURN(const ValueId y, layer.Add(std::make_shared<DenseOp>(), inputs));
  return AddActivation(layer, layer.Option("activation"), y);
}

}  // namespace shoal
