#include "worker/compute/cuda/gradient_check.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/gradient_check.h"

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
    std::vector<TensorId> tensors = {loss_scale, partial};
    tensors.insert(tensors.end(), gradients.begin(), gradients.end());
    AddStep(
        std::move(tensors),
        [=, ranges = parts[i], offset = grid * static_cast<int64_t>(i)](const StepTensors& at) {
          return GradientCheckKernel{at[2] - first, ranges, at[0], grid,
                                     at.At<GradientCheck>(1) + offset};
        },
        program);
  }
  const TensorId result = program.Scratch<GradientCheck>(1);
  AddStep(
      {partial, result},
      [blocks = grid * static_cast<int64_t>(parts.size())](const StepTensors& at) {
        return GradientCheckSumKernel{at.At<GradientCheck>(0), blocks, at.At<GradientCheck>(1)};
      },
      program);
  builder.SetGradientCheck(result);
}

}  // namespace shoal::cuda
