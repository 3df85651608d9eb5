#include "common/model/keras/merge.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "common/base/status_macros.h"

namespace shoal {
namespace {

// Returns `x` with axes of extent 1 inserted after the batch axis, up to `rank` axes.
absl::StatusOr<ValueId> WithRank(LayerCall& call, ValueId x, size_t rank) {
  Shape shape = call.shape(x);
  if (shape.empty()) return x;
  shape.insert(shape.begin() + 1, rank - shape.size(), 1);
  return call.Reshape(x, std::move(shape));
}

}  // namespace

absl::StatusOr<ValueId> FoldInputs(LayerCall& call, BinaryOp::Kind kind) {
  size_t rank = 0;
  for (const ValueId input : call.inputs()) rank = std::max(rank, call.shape(input).size());
  SHOAL_ASSIGN_OR_RETURN(ValueId result, WithRank(call, call.inputs()[0], rank));
  for (size_t i = 1; i < call.inputs().size(); ++i) {
    SHOAL_ASSIGN_OR_RETURN(const ValueId next, WithRank(call, call.inputs()[i], rank));
    if (const auto shape = BroadcastShape(call.shape(result), call.shape(next)); !shape.ok()) {
      return call.Invalid(std::string(shape.status().message()));
    }
    auto op = std::make_shared<BinaryOp>();
    op->kind = kind;
    SHOAL_ASSIGN_OR_RETURN(result, call.Add(std::move(op), {result, next}));
  }
  return result;
}

}  // namespace shoal
