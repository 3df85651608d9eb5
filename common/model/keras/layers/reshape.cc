#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_builder.h"
#include "common/model/ops/reshape.h"

namespace shoal {

// One extent of target_shape may be -1 and is then what is left.
absl::StatusOr<ValueId> ReadReshape(LayerBuilder& layer) {
  const JsonNode target = layer.Option("target_shape");
  SHOAL_RETURN_IF_ERROR(target.ExpectArray());
  const Shape& x = layer.input_shape();
  const int64_t elements = ElementCount(Shape(x.begin() + 1, x.end()));
  auto op = std::make_shared<ReshapeOp>();
  op->shape = {kBatch};
  int64_t known = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < target.size(); ++i) {
    SHOAL_ASSIGN_OR_RETURN(int64_t extent, target.at(i).Integer({-1, kMaxElements}));
    if (extent == 0) return target.at(i).Invalid("0 is no extent; -1 stands for what is left");
    if (extent == -1) {
      if (open.has_value()) return target.at(i).Invalid("only one extent may be -1");
      open = op->shape.size();
    } else if (elements % extent == 0 && elements / extent >= known) {
      known *= extent;  // at most `elements`
    } else {
      known = 0;  // fits no more
      break;
    }
    op->shape.push_back(extent);
  }
  const bool fits = known > 0 && elements % known == 0 && (open.has_value() || known == elements);
  if (!fits) {
    return target.Invalid(absl::StrCat("layer \"", layer.name(), "\" cannot reshape ",
                                       ShapeToString(x), ", ", elements,
                                       " elements an example, to ", target.Text()));
  }
  if (open.has_value()) op->shape[*open] = elements / known;
  return layer.Add(std::move(op), layer.inputs());
}

}  // namespace shoal
