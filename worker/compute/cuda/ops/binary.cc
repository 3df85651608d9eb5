#include "common/model/ops/binary.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/kernels/binary.h"
#include "worker/compute/cuda/kernels/strided.h"
#include "worker/compute/cuda/ops/same_shape_binary.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {

absl::Status Binary(const Node& node, CudaProgramBuilder& program) {
  const Shape shape = program.shape(node.outputs[0]);
  const Shape a_shape = program.shape(node.inputs[0]), b_shape = program.shape(node.inputs[1]);
  const int64_t count = ElementCount(shape);
  SHOAL_ASSIGN_OR_RETURN(const StridedAxes a_axes, RepeatedAxes(a_shape, shape));
  SHOAL_ASSIGN_OR_RETURN(const StridedAxes b_axes, RepeatedAxes(b_shape, shape));
  const bool of_one_shape = ElementCount(a_shape) == count && ElementCount(b_shape) == count;
  const ComputeDtype kept = of_one_shape ? program.stored_dtype(node) : ComputeDtype::kFloat32;
  const TensorId a = program.tensor(node.inputs[0], kept);
  const TensorId b = program.tensor(node.inputs[1], kept);
  const TensorId y = program.Output(node.outputs[0], kept);
  WithConstantKind(static_cast<const BinaryOp&>(*node.op).kind,
                   [&]<BinaryOp::Kind kind>(std::integral_constant<BinaryOp::Kind, kind>) {
                     if (of_one_shape) {
                       WithElement(kept, [&]<typename Element>(Element) {
                         AddBinary<kind, Element>(node, a, b, y, count, program);
                       });
                       return;
                     }
                     TensorList tensors;
                     const auto of_a = tensors.Add(a), of_b = tensors.Add(b), out = tensors.Add(y);
                     AddKernel(
                         node, std::move(tensors).Take(),
                         [=](const StepTensors& at) {
                           return RepeatedBinaryKernel<kind>{at[of_a], a_axes,  at[of_b],
                                                             b_axes,   at[out], count};
                         },
                         program);
                   });
  return absl::OkStatus();
}

}  // namespace shoal::cuda
