#include <memory>

#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/options/number_list.h"
#include "common/model/ops/rescale.h"

namespace shoal {
namespace {

class Rescaling : public LayerConfig {
 public:
  explicit Rescaling(LayerOptions& options) {
    // Each is one number, or one per channel.
    op_.scale = options.Take(ReadNumbers(options["scale"], 1));
    op_.offset = options.Take(ReadNumbers(options["offset"], 0));
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    return call.Add(std::make_shared<RescaleOp>(op_));
  }

 private:
  RescaleOp op_;
};

}  // namespace

extern const LayerType kRescalingLayer = {"Rescaling", LayerType::Inputs::kOne,
                                          "x · scale + offset, one of each or one a channel",
                                          ReadAs<Rescaling>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
