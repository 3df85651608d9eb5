#include <algorithm>
#include <memory>
#include <optional>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/binary.h"
#include "common/model/ops/conv2d.h"

namespace shoal {
namespace {

class Conv2DTranspose : public LayerConfig {
 public:
  explicit Conv2DTranspose(LayerOptions& options)
      : filters_(options.RequiredInteger("filters", kCounts)),
        kernel_(options.Variable("kernel", "glorot_uniform")),
        bias_(options.Bias()),
        activation_(options.Activation()) {
    op_.window.size = options.WindowExtents("kernel_size");
    op_.window.strides = options.WindowExtents("strides", {{1, 1}});
    op_.window.dilation = options.WindowExtents("dilation_rate", {{1, 1}});
    op_.window.padding = options.WindowPadding();
    options.ExpectChannelsLast();
    if (options.traits().keras2) options.Ignore("groups");  // from its base class: always 1
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectImages());
    const Shape x = call.input_shape();
    const Window& window = op_.window;
    auto op = std::make_shared<Conv2DBackwardDataOp>(op_);
    op->x_shape = {kBatch, OutputExtent(0, x[1]), OutputExtent(1, x[2]), filters_};
    SHOAL_ASSIGN_OR_RETURN(
        const ValueId kernel,
        call.AddVariable(kernel_, {window.size[0], window.size[1], filters_, x[3]}));
    SHOAL_ASSIGN_OR_RETURN(ValueId y, call.Add(std::move(op), {call.inputs()[0], kernel}));
    if (bias_.has_value()) {
      SHOAL_ASSIGN_OR_RETURN(const ValueId bias, call.AddVariable(*bias_, {filters_}));
      SHOAL_ASSIGN_OR_RETURN(y, call.Add(std::make_shared<BinaryOp>(), {y, bias}));  // a sum
    }
    return call.Activate(activation_, y);
  }

 private:
  // The output's extent that Keras chooses for an input of extent `in`.
  int64_t OutputExtent(int axis, int64_t in) const {
    const Window& window = op_.window;
    const int64_t span = (window.size[axis] - 1) * window.dilation[axis] + 1;
    const int64_t beyond = std::max<int64_t>(span - window.strides[axis], 0);
    return in * window.strides[axis] + (window.padding == Padding::kSame ? 0 : beyond);
  }

  const int64_t filters_;
  const VariableOptions kernel_;
  const std::optional<VariableOptions> bias_;
  const std::shared_ptr<const Op> activation_;
  Conv2DBackwardDataOp op_;
};

}  // namespace

extern const LayerType kConv2DTransposeLayer = {
    "Conv2DTranspose", LayerType::Inputs::kOne,
    "The gradient of a convolution as a layer: an image that is larger by the strides",
    ReadAs<Conv2DTranspose>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
