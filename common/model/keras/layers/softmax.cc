#include "common/model/ops/softmax.h"

#include <memory>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

class Softmax : public LayerConfig {
 public:
  explicit Softmax(LayerOptions& options) : axis_(options.Axis("axis", -1)) {}

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectLastAxis(axis_, "softmax"));
    return call.Add(std::make_shared<SoftmaxOp>());
  }

 private:
  const AxisOption axis_;
};

}  // namespace

extern const LayerType kSoftmaxLayer = {"Softmax", LayerType::Inputs::kOne,
                                        "Softmax along the last axis", ReadAs<Softmax>};

}  // namespace shoal
