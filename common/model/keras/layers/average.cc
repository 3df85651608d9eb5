#include <memory>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/merge.h"
#include "common/model/ops/rescale.h"

namespace shoal {
namespace {

class Average : public LayerConfig {
 public:
  explicit Average(LayerOptions&) {}

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_ASSIGN_OR_RETURN(const ValueId sum, FoldInputs(call, BinaryOp::Kind::kAdd));
    auto op = std::make_shared<RescaleOp>();
    op->scale = {1.0 / static_cast<double>(call.inputs().size())};
    return call.Add(std::move(op), {sum});
  }
};

}  // namespace

extern const LayerType kAverageLayer = {"Average", LayerType::Inputs::kSeveral,
                                        "The mean of the inputs; shapes broadcast",
                                        ReadAs<Average>};

}  // namespace shoal
