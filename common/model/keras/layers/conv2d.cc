#include "common/model/ops/conv2d.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

class Conv2D : public LayerConfig {
 public:
  explicit Conv2D(LayerOptions& options)
      : filters_(options.Integer("filters", kCounts)),
        groups_json_(options["groups"]),
        kernel_(options.Variable("kernel", "glorot_uniform")),
        bias_(options.Bias()),
        activation_(options.Activation()) {
    op_.groups = options.Integer("groups", kCounts, 1);
    op_.window.size = options.WindowExtents("kernel_size");
    op_.window.strides = options.WindowExtents("strides", {{1, 1}});
    op_.window.dilation = options.WindowExtents("dilation_rate", {{1, 1}});
    op_.window.padding = options.WindowPadding();
    options.ExpectChannelsLast();
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectImages());
    const int64_t channels = call.input_shape()[3];
    if (channels % op_.groups != 0 || filters_ % op_.groups != 0) {
      return groups_json_.Invalid(absl::StrCat(
          op_.groups, " groups must divide both the ", channels, " channels of the input and the ",
          filters_, " filters of layer \"", call.path(), "\""));
    }
    std::vector<ValueId> inputs = call.inputs();
    SHOAL_ASSIGN_OR_RETURN(const ValueId kernel,
                           call.AddVariable(kernel_, {op_.window.size[0], op_.window.size[1],
                                                      channels / op_.groups, filters_}));
    inputs.push_back(kernel);
    if (bias_.has_value()) {
      SHOAL_ASSIGN_OR_RETURN(const ValueId bias, call.AddVariable(*bias_, {filters_}));
      inputs.push_back(bias);
    }
    SHOAL_ASSIGN_OR_RETURN(const ValueId y, call.Add(std::make_shared<Conv2DOp>(op_), inputs));
    return call.Activate(activation_, y);
  }

 private:
  const int64_t filters_;
  const JsonNode groups_json_;
  const VariableOptions kernel_;
  const std::optional<VariableOptions> bias_;
  const std::shared_ptr<const Op> activation_;
  Conv2DOp op_;
};

}  // namespace

extern const LayerType kConv2DLayer = {"Conv2D", LayerType::Inputs::kOne,
                                       "Convolution over images (batch, height, width, channels)",
                                       ReadAs<Conv2D>};

}  // namespace shoal
