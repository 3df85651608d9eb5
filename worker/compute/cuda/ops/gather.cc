#include "common/model/ops/gather.h"

#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/gather.h"
#include "worker/compute/cuda/kernels/strided.h"

namespace shoal::cuda {

absl::Status Gather(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents table(program.shape(node.inputs[0]));
  const int64_t count = program.count(node.inputs[1]);
  WithWidth<float>(table.columns, [&]<int width>(std::integral_constant<int, width>) {
    AddKernel(
        node,
        {program.tensor(node.inputs[0]), program.tensor(node.inputs[1]),
         program.Output(node.outputs[0])},
        [=](const StepTensors& at) {
          return GatherKernel<float, width>{
              at[0], at[1], table.rows, static_cast<int32_t>(table.columns), count, at[2]};
        },
        program);
  });
  return absl::OkStatus();
}

absl::Status GatherBackward(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents table(program.shape(node.outputs[0]));
  const int64_t count = program.count(node.inputs[0]);
  const TensorId keys = program.Scratch<int32_t>(count), sorted = program.Scratch<int32_t>(count);
  const TensorId places = program.Scratch<int32_t>(count);
  const TensorId dtable = program.Output(node.outputs[0]);
  AddKernel(
      node, {program.tensor(node.inputs[0]), keys},
      [=](const StepTensors& at) {
        return RowKeysKernel{at[0], table.rows, count, at.At<int32_t>(1)};
      },
      program);
  AddKernel(
      node, {keys, sorted, places},
      [=](const StepTensors& at) {
        return RankKeysKernel{at.At<int32_t>(0), count, at.At<int32_t>(1), at.At<int32_t>(2)};
      },
      program);
  const int64_t size = table.rows * table.columns;
  WithWidth<float>(size, [&]<int width>(std::integral_constant<int, width>) {
    AddKernel(
        node, {dtable},
        [size](const StepTensors& at) {
          return FillKernel<float, width>{0, at[0], size};
        },
        program);
  });
  WithWidth<float>(table.columns, [&]<int width>(std::integral_constant<int, width>) {
    AddKernel(
        node, {sorted, places, program.tensor(node.inputs[1]), dtable},
        [=](const StepTensors& at) {
          return GatherBackwardKernel<float, width>{at.At<int32_t>(0),
                                                    at.At<int32_t>(1),
                                                    at[2],
                                                    table.rows,
                                                    static_cast<int32_t>(table.columns),
                                                    count,
                                                    at[3]};
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cuda
