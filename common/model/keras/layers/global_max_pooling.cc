#include <memory>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/reduce.h"

namespace shoal {
namespace {

// The maximum along all axes between the batch and the channels: two in an image, one in a
// sequence.
template <int kAxes>
class GlobalMaxPooling : public LayerConfig {
 public:
  explicit GlobalMaxPooling(LayerOptions& options) : keep_dims_(options.Flag("keepdims", false)) {
    options.ExpectChannelsLast();
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(kAxes == 2 ? call.ExpectImages() : call.ExpectSequences());
    const int64_t channels = call.input_shape().back();
    auto op = std::make_shared<MaxToOp>();
    op->shape = Shape(kAxes + 2, 1);
    op->shape.front() = kBatch;
    op->shape.back() = channels;
    SHOAL_ASSIGN_OR_RETURN(const ValueId largest, call.Add(std::move(op)));
    return keep_dims_ ? largest : call.Reshape(largest, {kBatch, channels});
  }

 private:
  const bool keep_dims_;
};

}  // namespace

extern const LayerType kGlobalMaxPooling2DLayer = {
    "GlobalMaxPooling2D", LayerType::Inputs::kOne, "The largest of each channel of an image",
    ReadAs<GlobalMaxPooling<2>>, LayerType::Integers::kAsNumbers};

extern const LayerType kGlobalMaxPooling1DLayer = {
    "GlobalMaxPooling1D", LayerType::Inputs::kOne, "The largest of each channel of a sequence",
    ReadAs<GlobalMaxPooling<1>>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
