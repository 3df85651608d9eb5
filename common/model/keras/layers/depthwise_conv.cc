#include <memory>
#include <optional>
#include <vector>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/conv2d.h"
#include "common/model/ops/depthwise_conv2d.h"

namespace shoal {
namespace {

// A depthwise convolution over images (rank 2) or sequences (rank 1).
template <int kRank>
class Depthwise : public LayerConfig {
 public:
  Depthwise(LayerOptions& options, const char* kernel)
      : multiplier_(options.Integer("depth_multiplier", 1, kCounts)),
        kernel_(options.Variable(kernel, "glorot_uniform", "depthwise")),
        bias_(options.Bias()),
        activation_(options.Activation()) {
    op_.window.size = options.WindowExtents("kernel_size", {}, kRank);
    op_.window.strides = options.WindowExtents("strides", {{1, 1}}, kRank);
    op_.window.dilation = options.WindowExtents("dilation_rate", {{1, 1}}, kRank);
    op_.window.padding = options.WindowPadding();
    options.ExpectChannelsLast();
  }
  // For DepthwiseConv, whose kernel has another name in Keras 2.
  explicit Depthwise(LayerOptions& options)
      : Depthwise(options, options.traits().keras2 ? "depthwise_kernel" : "kernel") {
    if (options.traits().keras2) options.Ignore("groups");  // from its base class: always 1
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_ASSIGN_OR_RETURN(ValueId y, CallDepthwise(call, bias_));
    SHOAL_ASSIGN_OR_RETURN(y, call.FromImages(kRank, y));
    return call.Activate(activation_, y);
  }

 protected:
  // Convolves the call's input and returns the result as images.
  absl::StatusOr<ValueId> CallDepthwise(LayerCall& call,
                                        const std::optional<VariableOptions>& bias) {
    SHOAL_ASSIGN_OR_RETURN(const ValueId images, call.InputImages(kRank));
    const int64_t channels = call.input_shape().back();
    SHOAL_ASSIGN_OR_RETURN(
        const ValueId kernel,
        call.AddKernel(kRank, kernel_,
                       {op_.window.size[0], op_.window.size[1], channels, multiplier_}));
    std::vector<ValueId> inputs = {images, kernel};
    if (bias.has_value()) {
      SHOAL_ASSIGN_OR_RETURN(inputs.emplace_back(),
                             call.AddVariable(*bias, {channels * multiplier_}));
    }
    return call.Add(std::make_shared<DepthwiseConv2DOp>(op_), inputs);
  }

  const std::optional<VariableOptions>& bias() const { return bias_; }
  const std::shared_ptr<const Op>& activation() const { return activation_; }

 private:
  const int64_t multiplier_;
  const VariableOptions kernel_;
  const std::optional<VariableOptions> bias_;
  const std::shared_ptr<const Op> activation_;
  DepthwiseConv2DOp op_;
};

// A depthwise convolution, then a convolution with windows of one element.
template <int kRank>
class SeparableConv : public Depthwise<kRank> {
 public:
  explicit SeparableConv(LayerOptions& options)
      : Depthwise<kRank>(options, "depthwise_kernel"),
        filters_(options.RequiredInteger("filters", kCounts)),
        kernel_(options.Variable("pointwise_kernel", "glorot_uniform", "pointwise")) {
    if (options.traits().keras2) options.Ignore("groups");  // always 1
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_ASSIGN_OR_RETURN(const ValueId deep, this->CallDepthwise(call, std::nullopt));
    SHOAL_ASSIGN_OR_RETURN(
        const ValueId kernel,
        call.AddKernel(kRank, kernel_, {1, 1, call.shape(deep).back(), filters_}));
    std::vector<ValueId> inputs = {deep, kernel};
    if (this->bias().has_value()) {
      SHOAL_ASSIGN_OR_RETURN(inputs.emplace_back(), call.AddVariable(*this->bias(), {filters_}));
    }
    SHOAL_ASSIGN_OR_RETURN(ValueId y, call.Add(std::make_shared<Conv2DOp>(), inputs));
    SHOAL_ASSIGN_OR_RETURN(y, call.FromImages(kRank, y));
    return call.Activate(this->activation(), y);
  }

 private:
  const int64_t filters_;
  const VariableOptions kernel_;
};

}  // namespace

extern const LayerType kDepthwiseConv2DLayer = {
    "DepthwiseConv2D", LayerType::Inputs::kOne, "Convolution of each channel of an image by itself",
    ReadAs<Depthwise<2>>, LayerType::Integers::kAsNumbers};

extern const LayerType kDepthwiseConv1DLayer = {
    "DepthwiseConv1D", LayerType::Inputs::kOne,
    "Convolution of each channel of a sequence by itself", ReadAs<Depthwise<1>>,
    LayerType::Integers::kAsNumbers};

extern const LayerType kSeparableConv2DLayer = {
    "SeparableConv2D", LayerType::Inputs::kOne,
    "Convolution of each channel of an image by itself, then of all, element by element",
    ReadAs<SeparableConv<2>>, LayerType::Integers::kAsNumbers};

extern const LayerType kSeparableConv1DLayer = {
    "SeparableConv1D", LayerType::Inputs::kOne,
    "Convolution of each channel of a sequence by itself, then of all, element by element",
    ReadAs<SeparableConv<1>>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
