#include <memory>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/pool2d.h"

namespace shoal {
namespace {

// Pools windows of images (rank 2) or sequences (rank 1).
template <Pool2DOp::Kind kKind, int kRank>
class Pooling : public LayerConfig {
 public:
  explicit Pooling(LayerOptions& options) {
    op_.kind = kKind;
    op_.window.size = options.WindowExtents("pool_size", {{2, 2}}, kRank);
    op_.window.strides = options.WindowExtents("strides", op_.window.size, kRank);
    op_.window.padding = options.WindowPadding();
    options.ExpectChannelsLast();
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_ASSIGN_OR_RETURN(const ValueId images, call.InputImages(kRank));
    SHOAL_ASSIGN_OR_RETURN(const ValueId y, call.Add(std::make_shared<Pool2DOp>(op_), {images}));
    return call.FromImages(kRank, y);
  }

 private:
  Pool2DOp op_;
};

}  // namespace

extern const LayerType kMaxPooling2DLayer = {
    "MaxPooling2D", LayerType::Inputs::kOne, "The largest element of each window of an image",
    ReadAs<Pooling<Pool2DOp::Kind::kMax, 2>>, LayerType::Integers::kAsNumbers};

extern const LayerType kAveragePooling2DLayer = {
    "AveragePooling2D", LayerType::Inputs::kOne,
    "The mean of each window of an image, of what lies inside it",
    ReadAs<Pooling<Pool2DOp::Kind::kAverage, 2>>};

extern const LayerType kMaxPooling1DLayer = {
    "MaxPooling1D", LayerType::Inputs::kOne, "The largest element of each window of a sequence",
    ReadAs<Pooling<Pool2DOp::Kind::kMax, 1>>, LayerType::Integers::kAsNumbers};

extern const LayerType kAveragePooling1DLayer = {
    "AveragePooling1D", LayerType::Inputs::kOne,
    "The mean of each window of a sequence, of what lies inside it",
    ReadAs<Pooling<Pool2DOp::Kind::kAverage, 1>>};

}  // namespace shoal
