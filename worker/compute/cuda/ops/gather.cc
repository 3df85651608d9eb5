#include "common/model/ops/gather.h"

#include <utility>

#include "worker/compute/cuda/kernels/gather.h"
#include "worker/compute/cuda/kernels/strided.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {

absl::Status Gather(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents table(program.shape(node.inputs[0]));
  const int64_t count = program.count(node.inputs[1]);
  WithWidth<float>(table.columns, [&]<int width>(std::integral_constant<int, width>) {
    TensorList tensors;
    const auto of_table = tensors.Add(program.tensor(node.inputs[0]));
    const auto ids = tensors.Add(program.tensor(node.inputs[1]));
    const auto y = tensors.Add(program.Output(node.outputs[0]));
    AddKernel(
        node, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return GatherKernel<float, width>{
              at[of_table], at[ids], table.rows, static_cast<int32_t>(table.columns), count, at[y]};
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
  TensorList of_keys;
  const auto ids = of_keys.Add(program.tensor(node.inputs[0]));
  const auto to_keys = of_keys.Add<int32_t>(keys);
  AddKernel(
      node, std::move(of_keys).Take(),
      [=](const StepTensors& at) {
        return RowKeysKernel{at[ids], table.rows, count, at[to_keys]};
      },
      program);
  TensorList of_ranks;
  const auto from_keys = of_ranks.Add<int32_t>(keys);
  const auto to_sorted = of_ranks.Add<int32_t>(sorted);
  const auto to_places = of_ranks.Add<int32_t>(places);
  AddKernel(
      node, std::move(of_ranks).Take(),
      [=](const StepTensors& at) {
        return RankKeysKernel{at[from_keys], count, at[to_sorted], at[to_places]};
      },
      program);
  const int64_t size = table.rows * table.columns;
  WithWidth<float>(size, [&]<int width>(std::integral_constant<int, width>) {
    TensorList tensors;
    const auto out = tensors.Add(dtable);
    AddKernel(
        node, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return FillKernel<float, width>{0, at[out], size};
        },
        program);
  });
  WithWidth<float>(table.columns, [&]<int width>(std::integral_constant<int, width>) {
    TensorList tensors;
    const auto from_sorted = tensors.Add<int32_t>(sorted);
    const auto from_places = tensors.Add<int32_t>(places);
    const auto dy = tensors.Add(program.tensor(node.inputs[1]));
    const auto out = tensors.Add(dtable);
    AddKernel(
        node, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return GatherBackwardKernel<float, width>{at[from_sorted],
                                                    at[from_places],
                                                    at[dy],
                                                    table.rows,
                                                    static_cast<int32_t>(table.columns),
                                                    count,
                                                    at[out]};
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cuda
