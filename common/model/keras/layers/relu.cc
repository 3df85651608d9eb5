#include <memory>

#include "common/model/keras/activation_config.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

class ActivationLayer : public LayerConfig {
 public:
  ActivationLayer(const char* class_name, LayerOptions& options) {
    op_.attributes = options.Take(ReadActivationLayer(class_name, options.config()));
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    return call.Add(std::make_shared<ActivationOp>(op_));
  }

 private:
  ActivationOp op_;
};

std::unique_ptr<LayerConfig> ReadReLU(LayerOptions& options) {
  return std::make_unique<ActivationLayer>("ReLU", options);
}

std::unique_ptr<LayerConfig> ReadLeakyReLU(LayerOptions& options) {
  return std::make_unique<ActivationLayer>("LeakyReLU", options);
}

std::unique_ptr<LayerConfig> ReadELU(LayerOptions& options) {
  return std::make_unique<ActivationLayer>("ELU", options);
}

}  // namespace

extern const LayerType kReLULayer = {
    "ReLU", LayerType::Inputs::kOne,
    "What is above a threshold, up to a largest value; below it with a slope", ReadReLU};

extern const LayerType kLeakyReLULayer = {"LeakyReLU", LayerType::Inputs::kOne,
                                          "x where it is above 0, below with a slope",
                                          ReadLeakyReLU};

extern const LayerType kELULayer = {"ELU", LayerType::Inputs::kOne,
                                    "x where it is above 0, below alpha · (exp(x) − 1)", ReadELU};

}  // namespace shoal
