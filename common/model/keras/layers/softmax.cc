#include "common/model/ops/softmax.h"

#include <memory>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

class SoftmaxConfig : public LayerConfig {
 public:
  explicit SoftmaxConfig(LayerOptions& options) : axis_(options.Axis("axis", -1)) {
    // Null does not select the default. It means all axes at once.
    if (!axis_.json.is_null() || !options.given().Contains("axis")) return;
    options.Take(axis_.json.Unimplemented(
        "Shoal has softmax along the last axis only, not over all axes; use -1 instead of "
        "null"));
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectLastAxis(axis_, "softmax"));
    return call.Add(std::make_shared<SoftmaxOp>());
  }

 private:
  const AxisOption axis_;
};

}  // namespace

extern const LayerType kSoftmaxLayer = {"Softmax", LayerType::Inputs::kOne,
                                        "Softmax along the last axis", ReadAs<SoftmaxConfig>};

}  // namespace shoal
