#include <memory>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/pool2d.h"

namespace shoal {
namespace {

// The mean of each channel of images (rank 2) or sequences (rank 1).
template <int kRank>
class GlobalAveragePooling : public LayerConfig {
 public:
  explicit GlobalAveragePooling(LayerOptions& options) {
    op_.keep_dims = options.Flag("keepdims", false);
    options.ExpectChannelsLast();
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_ASSIGN_OR_RETURN(const ValueId images, call.InputImages(kRank));
    SHOAL_ASSIGN_OR_RETURN(const ValueId mean,
                           call.Add(std::make_shared<GlobalAveragePool2DOp>(op_), {images}));
    return op_.keep_dims ? call.FromImages(kRank, mean) : mean;
  }

 private:
  GlobalAveragePool2DOp op_;
};

}  // namespace

extern const LayerType kGlobalAveragePooling2DLayer = {
    "GlobalAveragePooling2D", LayerType::Inputs::kOne, "The mean of each channel of an image",
    ReadAs<GlobalAveragePooling<2>>, LayerType::Integers::kAsNumbers};

extern const LayerType kGlobalAveragePooling1DLayer = {
    "GlobalAveragePooling1D", LayerType::Inputs::kOne, "The mean of each channel of a sequence",
    ReadAs<GlobalAveragePooling<1>>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
