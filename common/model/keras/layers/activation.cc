#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

class Activation : public LayerConfig {
 public:
  explicit Activation(LayerOptions& options) : op_(options.Activation()) {}

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    return call.Activate(op_, call.inputs()[0]);
  }

 private:
  const std::shared_ptr<const Op> op_;
};

}  // namespace

extern const LayerType kActivationLayer = {"Activation", LayerType::Inputs::kOne,
                                           "An activation function by its name",
                                           ReadAs<Activation>};

}  // namespace shoal
