#include <memory>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/pool2d.h"

namespace shoal {
namespace {

template <Pool2DOp::Kind kKind>
class Pooling2D : public LayerConfig {
 public:
  explicit Pooling2D(LayerOptions& options) {
    op_.kind = kKind;
    op_.window.size = options.WindowExtents("pool_size", {{2, 2}});
    op_.window.strides = options.WindowExtents("strides", op_.window.size);
    op_.window.padding = options.WindowPadding();
    options.ExpectChannelsLast();
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectImages());
    return call.Add(std::make_shared<Pool2DOp>(op_));
  }

 private:
  Pool2DOp op_;
};

}  // namespace

extern const LayerType kMaxPooling2DLayer = {"MaxPooling2D", LayerType::Inputs::kOne,
                                             "The largest element of each window of an image",
                                             ReadAs<Pooling2D<Pool2DOp::Kind::kMax>>};

extern const LayerType kAveragePooling2DLayer = {
    "AveragePooling2D", LayerType::Inputs::kOne,
    "The mean of each window of an image, of what lies inside it",
    ReadAs<Pooling2D<Pool2DOp::Kind::kAverage>>};

}  // namespace shoal
