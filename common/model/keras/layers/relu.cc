#include <memory>

#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/options/activation_config.h"

namespace shoal {
namespace {

template <auto kRead>
class ActivationLayer : public LayerConfig {
 public:
  explicit ActivationLayer(LayerOptions& options) { op_.attributes = kRead(options); }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    return call.Add(std::make_shared<ActivationOp>(op_));
  }

 private:
  ActivationOp op_;
};

}  // namespace

extern const LayerType kReLULayer = {
    "ReLU", LayerType::Inputs::kOne,
    "What is above a threshold, up to a largest value; below it with a slope",
    ReadAs<ActivationLayer<ReadRelu>>};

extern const LayerType kLeakyReLULayer = {
    "LeakyReLU", LayerType::Inputs::kOne, "x where it is above 0, below with a slope",
    ReadAs<ActivationLayer<ReadLeakyRelu>>, LayerType::Integers::kAsNumbers};

extern const LayerType kELULayer = {
    "ELU", LayerType::Inputs::kOne, "x where it is above 0, below alpha · (exp(x) − 1)",
    ReadAs<ActivationLayer<ReadElu>>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
