#include <memory>

#include "common/model/keras/activation_config.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/activation.h"

namespace shoal {
namespace {

class ReLU : public LayerConfig {
 public:
  explicit ReLU(LayerOptions& options) {
    op_.attributes = options.Take(ReadReluOptions(options.config()));
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    return call.Add(std::make_shared<ActivationOp>(op_));
  }

 private:
  ActivationOp op_;
};

}  // namespace

extern const LayerType kReLULayer = {
    "ReLU", LayerType::Inputs::kOne,
    "What is above a threshold, up to a largest value; below it with a slope", ReadAs<ReLU>};

}  // namespace shoal
