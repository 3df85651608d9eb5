#include <memory>

#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/add.h"

namespace shoal {
namespace {

class Add : public LayerConfig {
 public:
  explicit Add(LayerOptions&) {}

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    return call.Add(std::make_shared<AddOp>());
  }
};

}  // namespace

extern const LayerType kAddLayer = {"Add", LayerType::Inputs::kSeveral,
                                    "The sum of inputs of one shape", ReadAs<Add>};

}  // namespace shoal
