#include "common/model/ops/softmax.h"

#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

// The axis, bare or in a list of one.
JsonNode AxisOf(const JsonNode& json) {
  return json.is_array() && json.size() == 1 ? json.at(0) : json;
}

class Softmax : public LayerConfig {
 public:
  explicit Softmax(LayerOptions& options)
      : axis_json_(AxisOf(options["axis"])), axis_(options.Take(axis_json_.Integer(kAxes, -1))) {}

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    const Shape& x = call.input_shape();
    if (axis_ != -1 && axis_ != static_cast<int64_t>(x.size()) - 1) {
      return axis_json_.Unimplemented(
          absl::StrCat("Shoal has softmax along the last axis only; -1 would be right, got ", axis_,
                       " for an input of shape ", ShapeToString(x)));
    }
    return call.Add(std::make_shared<SoftmaxOp>());
  }

 private:
  const JsonNode axis_json_;
  const int64_t axis_;
};

}  // namespace

extern const LayerType kSoftmaxLayer = {"Softmax", LayerType::Inputs::kOne,
                                        "Softmax along the last axis", ReadAs<Softmax>};

}  // namespace shoal
