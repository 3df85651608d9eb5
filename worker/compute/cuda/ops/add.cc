#include "worker/compute/cuda/ops/same_shape_binary.h"

namespace shoal::cuda {

absl::Status Add(const Node& node, CudaProgramBuilder& program) {
  const int64_t count = program.count(node.outputs[0]);
  if (node.inputs.size() == 1) {
    program.Bind(node.outputs[0], node.inputs[0]);
    return absl::OkStatus();
  }
  const ComputeDtype kept = program.stored_dtype(node);
  TensorId sum = program.tensor(node.inputs[0], kept);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const bool last = i + 1 == node.inputs.size();
    const TensorId y =
        last ? program.Output(node.outputs[0], kept) : program.ScratchOf(kept, count);
    const TensorId other = program.tensor(node.inputs[i], kept);
    WithElement(kept, [&]<typename Element>(Element) {
      AddBinary<BinaryOp::Kind::kAdd, Element>(node, sum, other, y, count, program);
    });
    sum = y;
  }
  return absl::OkStatus();
}

}  // namespace shoal::cuda
