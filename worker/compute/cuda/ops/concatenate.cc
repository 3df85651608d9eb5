#include "common/model/ops/concatenate.h"

#include "common/base/status_macros.h"
#include "worker/compute/cuda/ops/strided_move.h"

namespace shoal::cuda {

absl::Status Concatenate(const Node& node, CudaProgramBuilder& program) {
  const int axis = static_cast<const ConcatenateOp&>(*node.op).axis;
  const Shape shape = program.shape(node.outputs[0]);
  const ComputeDtype kept = program.stored_dtype(node);
  const TensorId to = program.Output(node.outputs[0], kept);
  int64_t first = 0;
  for (const ValueId input : node.inputs) {
    const Shape box = program.shape(input);
    Move move = {.type = kept, .from = program.tensor(input, kept), .to = to, .to_first = first};
    move.count = ElementCount(box);
    SHOAL_ASSIGN_OR_RETURN(move.from_axes, BoxAxes(box, box));
    SHOAL_ASSIGN_OR_RETURN(move.to_axes, BoxAxes(box, shape));
    AddMove(node, move, program);
    first += box[axis] * StridesOf(shape)[axis];
  }
  return absl::OkStatus();
}

}  // namespace shoal::cuda
