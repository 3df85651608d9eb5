#include "common/model/ops/binary.h"

#include <vector>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/binary.h"
#include "worker/compute/cuda/kernels/strided.h"
#include "worker/compute/cuda/ops/same_shape_binary.h"

namespace shoal::cuda {

absl::Status Binary(const Node& node, CudaProgramBuilder& program) {
  const Shape shape = program.shape(node.outputs[0]);
  const Shape a = program.shape(node.inputs[0]), b = program.shape(node.inputs[1]);
  const int64_t count = ElementCount(shape);
  SHOAL_ASSIGN_OR_RETURN(const StridedAxes a_axes, RepeatedAxes(a, shape));
  SHOAL_ASSIGN_OR_RETURN(const StridedAxes b_axes, RepeatedAxes(b, shape));
  const bool of_one_shape = ElementCount(a) == count && ElementCount(b) == count;
  const ComputeDtype kept = of_one_shape ? program.stored_dtype(node) : ComputeDtype::kFloat32;
  const std::vector<TensorId> tensors = {program.tensor(node.inputs[0], kept),
                                         program.tensor(node.inputs[1], kept),
                                         program.Output(node.outputs[0], kept)};
  WithConstantKind(
      static_cast<const BinaryOp&>(*node.op).kind,
      [&]<BinaryOp::Kind kind>(std::integral_constant<BinaryOp::Kind, kind>) {
        if (of_one_shape) {
          WithElement(kept, [&]<typename Element>(Element) {
            AddBinary<kind, Element>(node, tensors[0], tensors[1], tensors[2], count, program);
          });
          return;
        }
        AddKernel(
            node, tensors,
            [=](const StepTensors& at) {
              return RepeatedBinaryKernel<kind>{at[0], a_axes, at[1], b_axes, at[2], count};
            },
            program);
      });
  return absl::OkStatus();
}

}  // namespace shoal::cuda
