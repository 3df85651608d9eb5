#include <memory>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/pool2d.h"

namespace shoal {
namespace {

class GlobalAveragePooling2D : public LayerConfig {
 public:
  explicit GlobalAveragePooling2D(LayerOptions& options) {
    op_.keep_dims = options.Bool("keepdims", false);
    options.ExpectChannelsLast();
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectImages());
    return call.Add(std::make_shared<GlobalAveragePool2DOp>(op_));
  }

 private:
  GlobalAveragePool2DOp op_;
};

// As an image of one row.
class GlobalAveragePooling1D : public LayerConfig {
 public:
  explicit GlobalAveragePooling1D(LayerOptions& options)
      : keep_dims_(options.Bool("keepdims", false)) {
    options.ExpectChannelsLast();
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectSequences());
    const int64_t steps = call.input_shape()[1];
    const int64_t channels = call.input_shape()[2];
    SHOAL_ASSIGN_OR_RETURN(const ValueId row,
                           call.Reshape(call.inputs()[0], {kBatch, 1, steps, channels}));
    SHOAL_ASSIGN_OR_RETURN(const ValueId mean,
                           call.Add(std::make_shared<GlobalAveragePool2DOp>(), {row}));
    return keep_dims_ ? call.Reshape(mean, {kBatch, 1, channels}) : mean;
  }

 private:
  const bool keep_dims_;
};

}  // namespace

extern const LayerType kGlobalAveragePooling2DLayer = {
    "GlobalAveragePooling2D", LayerType::Inputs::kOne, "The mean of each channel of an image",
    ReadAs<GlobalAveragePooling2D>};

extern const LayerType kGlobalAveragePooling1DLayer = {
    "GlobalAveragePooling1D", LayerType::Inputs::kOne, "The mean of each channel of a sequence",
    ReadAs<GlobalAveragePooling1D>};

}  // namespace shoal
