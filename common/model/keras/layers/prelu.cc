#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/activation.h"
#include "common/model/ops/binary.h"
#include "common/model/ops/rescale.h"

namespace shoal {
namespace {

class PReLU : public LayerConfig {
 public:
  explicit PReLU(LayerOptions& options)
      : alpha_(options.Variable("alpha", "zeros")), shared_json_(options["shared_axes"]) {
    if (shared_json_.is_null()) return;
    options.Take(shared_json_.ExpectArray());
    for (size_t i = 0; shared_json_.is_array() && i < shared_json_.size(); ++i) {
      const JsonNode axis = shared_json_.at(i);
      shared_.push_back({axis, options.Take(axis.Integer(kAxes), int64_t{1})});
    }
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    Shape shape = call.input_shape();
    const int64_t rank = static_cast<int64_t>(shape.size());
    for (const AxisOption& option : shared_) {
      // Keras counts axes that are not above 0 from the end: 0 is the last axis, -1 the one before.
      const int64_t axis = option.axis > 0 ? option.axis : option.axis + rank - 1;
      if (axis < 1 || axis >= rank) {
        return option.json.Invalid(
            absl::StrCat(option.axis, " is no axis behind the batch of an input of shape ",
                         ShapeToString(call.input_shape())));
      }
      shape[axis] = 1;
    }
    if (shape.size() < 2) return call.Invalid("takes an input with an axis behind the batch");
    shape.erase(shape.begin());
    SHOAL_ASSIGN_OR_RETURN(const ValueId alpha, call.AddVariable(alpha_, shape));
    // max(x, 0) - alpha * max(-x, 0), as in Keras.
    auto negate = std::make_shared<RescaleOp>();
    negate->scale = {-1};
    auto multiply = std::make_shared<BinaryOp>();
    multiply->kind = BinaryOp::Kind::kMultiply;
    auto subtract = std::make_shared<BinaryOp>();
    subtract->kind = BinaryOp::Kind::kSubtract;
    SHOAL_ASSIGN_OR_RETURN(const ValueId above, call.Add(std::make_shared<ActivationOp>()));
    SHOAL_ASSIGN_OR_RETURN(ValueId below, call.Add(std::move(negate)));
    SHOAL_ASSIGN_OR_RETURN(below, call.Add(std::make_shared<ActivationOp>(), {below}));
    SHOAL_ASSIGN_OR_RETURN(below, call.Add(std::move(multiply), {below, alpha}));
    return call.Add(std::move(subtract), {above, below});
  }

 private:
  const VariableOptions alpha_;
  const JsonNode shared_json_;
  std::vector<AxisOption> shared_;
};

}  // namespace

extern const LayerType kPReLULayer = {"PReLU", LayerType::Inputs::kOne,
                                      "x where it is above 0, below with a slope that is learnt",
                                      ReadAs<PReLU>};

}  // namespace shoal
