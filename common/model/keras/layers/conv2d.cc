#include <limits>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/activation_config.h"
#include "common/model/keras/layer_builder.h"
#include "common/model/keras/window_config.h"
#include "common/model/ops/conv2d.h"

namespace shoal {

absl::StatusOr<ValueId> ReadConv2D(LayerBuilder& layer) {
  constexpr IntegerRange kCount = {1, std::numeric_limits<int32_t>::max()};
  auto op = std::make_shared<Conv2DOp>();
  SHOAL_ASSIGN_OR_RETURN(const int64_t filters, layer.Option("filters").Integer(kCount));
  SHOAL_ASSIGN_OR_RETURN(op->groups, layer.Option("groups").Integer(kCount, 1));
  SHOAL_ASSIGN_OR_RETURN(op->window.size, layer.Option("kernel_size").Pair(kWindowExtents));
  SHOAL_ASSIGN_OR_RETURN(op->window.strides,
                         layer.Option("strides").Pair(kWindowExtents, {{1, 1}}));
  SHOAL_ASSIGN_OR_RETURN(op->window.dilation,
                         layer.Option("dilation_rate").Pair(kWindowExtents, {{1, 1}}));
  SHOAL_ASSIGN_OR_RETURN(op->window.padding, ReadPadding(layer));
  SHOAL_ASSIGN_OR_RETURN(const bool use_bias, layer.Option("use_bias").Bool(true));
  SHOAL_RETURN_IF_ERROR(layer.ExpectChannelsLast());
  SHOAL_RETURN_IF_ERROR(layer.ExpectImages());
  const int64_t channels = layer.input_shape()[3];
  if (channels % op->groups != 0 || filters % op->groups != 0) {
    return layer.Option("groups").Invalid(absl::StrCat(
        op->groups, " groups must divide both the ", channels, " channels of the input and the ",
        filters, " filters of layer \"", layer.name(), "\""));
  }

  std::vector<ValueId> inputs = layer.inputs();
  SHOAL_ASSIGN_OR_RETURN(
      const ValueId kernel,
      layer.AddVariable("kernel",
                        {op->window.size[0], op->window.size[1], channels / op->groups, filters},
                        "kernel_initializer", "glorot_uniform"));
  inputs.push_back(kernel);
  layer.Option("bias_initializer");  // Keras writes it without a bias too
  if (use_bias) {
    SHOAL_ASSIGN_OR_RETURN(const ValueId bias,
                           layer.AddVariable("bias", {filters}, "bias_initializer", "zeros"));
    inputs.push_back(bias);
  }
  SHOAL_ASSIGN_OR_RETURN(const ValueId y, layer.Add(std::move(op), inputs));
  return AddActivation(layer, layer.Option("activation"), y);
}

}  // namespace shoal
