#include "common/model/ops/bias.h"

#include "worker/compute/cuda/kernels/bias.h"
#include "worker/compute/cuda/ops/column_slices.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {

absl::Status BiasBackward(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents extents(program.shape(node.inputs[0]));
  const ComputeDtype type = node.compute_dtype;
  const TensorId dy = program.tensor(node.inputs[0], type);
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    const ColumnSlices slices = SlicesOf(extents, width, program);
    const TensorId partial = program.Scratch(slices.count * extents.columns);
    AddKernel(
        node, {dy, partial},
        [=](const StepTensors& at) {
          return ColumnSumsKernel<BiasTerms<Element, width>>{
              {at.At<Element>(0)}, slices, extents.columns, at[1]};
        },
        program);
    AddKernel(
        node, {partial, program.Output(node.outputs[0])},
        [=](const StepTensors& at) {
          return SumOfSlicesKernel<1>{at[0], slices.count, extents.columns, {at[1]}};
        },
        program);
  };
  WithPacks(type, extents.columns, add);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
