#include "absl/strings/str_cat.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/merge.h"

namespace shoal {
namespace {

class Subtract : public LayerConfig {
 public:
  explicit Subtract(LayerOptions&) {}

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    if (call.inputs().size() == 2) return FoldInputs(call, BinaryOp::Kind::kSubtract);
    return call.Invalid(absl::StrCat("takes two inputs, got ", call.inputs().size()));
  }
};

}  // namespace

extern const LayerType kSubtractLayer = {"Subtract", LayerType::Inputs::kSeveral,
                                         "The first input less the second; shapes broadcast",
                                         ReadAs<Subtract>};

}  // namespace shoal
