#include "worker/compute/cuda/gradient_check.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "worker/compute/cuda/kernels/gradient_check.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {
namespace {

// Adds a step that belongs to no node.
template <typename Make>
void AddStep(std::vector<TensorId> tensors, Make make, CudaProgramBuilder& program) {
  program.builder().AddStep(
      std::make_unique<KernelStep<Make>>(NodeName{.op = "GradientCheck"}, program.target().stream,
                                         std::move(make)),
      std::move(tensors));
}

}  // namespace

void AddGradientCheck(CudaProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const Plan& plan = builder.plan();
  const std::vector<GradientRanges> parts =
      RangesOfGradients(plan.graph().variables(), plan.layout());
  if (parts.empty()) return;
  std::vector<TensorId> gradients;
  for (const TensorId gradient : builder.CompleteGradients()) {
    if (gradient >= 0) gradients.push_back(gradient);
  }
  // The offset in the buffer that holds all gradients.
  const int64_t first =
      builder.tensor_info(gradients[0]).offset / static_cast<int64_t>(sizeof(float));
  const int64_t grid = std::max<int64_t>(1, program.target().blocks);
  const TensorId loss_scale = program.tensor(plan.training_graph().loss_scale);
  const TensorId partial =
      program.Scratch<GradientCheck>(grid * static_cast<int64_t>(parts.size()));
  for (size_t i = 0; i < parts.size(); ++i) {
    TensorList tensors;
    const auto of_scale = tensors.Add(loss_scale);
    const auto to_partial = tensors.Add<GradientCheck>(partial);
    const auto first_gradient = tensors.Add(gradients[0]);
    for (size_t j = 1; j < gradients.size(); ++j) tensors.Add(gradients[j]);
    AddStep(
        std::move(tensors).Take(),
        [=, ranges = parts[i], offset = grid * static_cast<int64_t>(i)](const StepTensors& at) {
          return GradientCheckKernel{at[first_gradient] - first, ranges, at[of_scale], grid,
                                     at[to_partial] + offset};
        },
        program);
  }
  const TensorId result = program.Scratch<GradientCheck>(1);
  TensorList last;
  const auto from = last.Add<GradientCheck>(partial), to = last.Add<GradientCheck>(result);
  AddStep(
      std::move(last).Take(),
      [=, blocks = grid * static_cast<int64_t>(parts.size())](const StepTensors& at) {
        return GradientCheckSumKernel{at[from], blocks, at[to]};
      },
      program);
  builder.SetGradientCheck(result);
}

}  // namespace shoal::cuda
