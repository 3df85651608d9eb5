#include "common/model/ops/reshape.h"

#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

// Reads the extents of an example. One may be -1, which means the rest of the elements.
absl::StatusOr<Shape> ReadTarget(const JsonNode& json) {
  SHOAL_RETURN_IF_ERROR(json.ExpectArray());
  Shape target;
  bool open = false;
  for (size_t i = 0; i < json.size(); ++i) {
    SHOAL_ASSIGN_OR_RETURN(const int64_t extent, json.at(i).Integer({-1, kMaxElements}));
    if (extent == 0) return json.at(i).Invalid("0 is no extent; -1 stands for what is left");
    if (extent == -1 && open) return json.at(i).Invalid("only one extent may be -1");
    open = open || extent == -1;
    target.push_back(extent);
  }
  return target;
}

class Reshape : public LayerConfig {
 public:
  explicit Reshape(LayerOptions& options)
      : json_(options["target_shape"]), target_(options.Take(ReadTarget(json_))) {}

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    const Shape& x = call.input_shape();
    const int64_t elements = ElementCount(Shape(x.begin() + 1, x.end()));
    auto op = std::make_shared<ReshapeOp>();
    op->shape = {kBatch};
    std::optional<size_t> open;
    int64_t left = elements;  // elements to spread over the next extents; 0: no fit
    for (const int64_t extent : target_) {
      if (extent == -1) {
        open = op->shape.size();
      } else {
        left = left % extent == 0 ? left / extent : 0;
      }
      op->shape.push_back(extent);
    }
    if (left == 0 || (left > 1 && !open.has_value())) {
      return json_.Invalid(absl::StrCat("layer \"", call.path(), "\" cannot reshape ",
                                        ShapeToString(x), ", ", elements,
                                        " elements an example, to ", json_.Text()));
    }
    if (open.has_value()) op->shape[*open] = left;
    return call.Add(std::move(op));
  }

 private:
  const JsonNode json_;
  const Shape target_;
};

}  // namespace

extern const LayerType kReshapeLayer = {"Reshape", LayerType::Inputs::kOne,
                                        "The elements of an example in another shape",
                                        ReadAs<Reshape>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
