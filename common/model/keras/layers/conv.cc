#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/conv2d.h"
#include "common/model/ops/pad.h"

namespace shoal {
namespace {

// A convolution over images (rank 2) or sequences (rank 1).
template <int kRank>
class Conv : public LayerConfig {
 public:
  explicit Conv(LayerOptions& options)
      : filters_(options.RequiredInteger("filters", kCounts)),
        groups_json_(options["groups"]),
        kernel_(options.Variable("kernel", "glorot_uniform")),
        bias_(options.Bias()),
        activation_(options.Activation()) {
    op_.groups = options.Integer("groups", 1, kCounts);
    op_.window.size = options.WindowExtents("kernel_size", {}, kRank);
    op_.window.strides = options.WindowExtents("strides", {{1, 1}}, kRank);
    op_.window.dilation = options.WindowExtents("dilation_rate", {{1, 1}}, kRank);
    op_.window.padding = options.WindowPadding(kRank == 1 ? &causal_ : nullptr);
    options.ExpectChannelsLast();
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_ASSIGN_OR_RETURN(ValueId images, call.InputImages(kRank));
    if (causal_) {
      auto pad = std::make_shared<PadOp>();
      pad->margins = {.before = {0, (op_.window.size[1] - 1) * op_.window.dilation[1], 0},
                      .after = {0, 0, 0}};
      SHOAL_ASSIGN_OR_RETURN(images, call.Add(std::move(pad), {images}));
    }
    const int64_t channels = call.input_shape().back();
    if (channels % op_.groups != 0 || filters_ % op_.groups != 0) {
      return groups_json_.Invalid(absl::StrCat(
          op_.groups, " groups must divide both the ", channels, " channels of the input and the ",
          filters_, " filters of layer \"", call.path(), "\""));
    }
    SHOAL_ASSIGN_OR_RETURN(
        const ValueId kernel,
        call.AddKernel(kRank, kernel_,
                       {op_.window.size[0], op_.window.size[1], channels / op_.groups, filters_}));
    std::vector<ValueId> inputs = {images, kernel};
    if (bias_.has_value()) {
      SHOAL_ASSIGN_OR_RETURN(const ValueId bias, call.AddVariable(*bias_, {filters_}));
      inputs.push_back(bias);
    }
    SHOAL_ASSIGN_OR_RETURN(ValueId y, call.Add(std::make_shared<Conv2DOp>(op_), inputs));
    SHOAL_ASSIGN_OR_RETURN(y, call.FromImages(kRank, y));
    return call.Activate(activation_, y);
  }

 private:
  const int64_t filters_;
  const JsonNode groups_json_;
  const VariableOptions kernel_;
  const std::optional<VariableOptions> bias_;
  const std::shared_ptr<const Op> activation_;
  bool causal_ = false;
  Conv2DOp op_;
};

}  // namespace

extern const LayerType kConv2DLayer = {"Conv2D", LayerType::Inputs::kOne,
                                       "Convolution over images (batch, height, width, channels)",
                                       ReadAs<Conv<2>>, LayerType::Integers::kAsNumbers};

extern const LayerType kConv1DLayer = {"Conv1D", LayerType::Inputs::kOne,
                                       "Convolution over sequences (batch, steps, channels)",
                                       ReadAs<Conv<1>>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
