// The three passes of a dense convolution, and a transposed convolution, which is the second of
// them.

#include "common/model/ops/conv2d.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/cudnn/convolutions.h"
#include "worker/compute/cuda/kernels/activation.h"
#include "worker/compute/cuda/kernels/conv2d.h"
#include "worker/compute/cuda/kernels/transpose.h"
#include "worker/compute/cuda/program/kernel_step.h"
#include "worker/compute/plan/fused_ops.h"

namespace shoal::cuda {
namespace {

using Pass = ConvolutionGraph::Pass;

// A pass computed by program.target().convolutions, or by plain sums if that returns
// kUnimplemented.
struct Pieces {
  ConvolutionGraph graph;
  std::unique_ptr<Kernel> kernel;  // null: plain sums
  TensorId workspace = -1;
};

absl::StatusOr<Pieces> Prepare(const Node& node, ConvolutionGraph graph,
                               CudaProgramBuilder& program) {
  Pieces pieces = {.graph = std::move(graph)};
  absl::StatusOr<Convolutions::Made> made = program.target().convolutions->Make(
      pieces.graph, program.builder().plan().may_measure(), program.name(node));
  if (absl::IsUnimplemented(made.status())) {
    program.target().on_plain_sums(program.name(node), made.status());
    return pieces;
  }
  SHOAL_RETURN_IF_ERROR(made.status());
  pieces.kernel = std::move(made->kernel);
  pieces.workspace = program.Scratch<char>(std::max<int64_t>(1, made->workspace_bytes));
  return pieces;
}

// Appends the step with `tensors` as its tensors in memory.
void AddConvolution(Pieces pieces, std::vector<TensorId> tensors, CudaProgramBuilder& program) {
  tensors.push_back(pieces.workspace);
  program.builder().AddStep(std::move(pieces.kernel), std::move(tensors));
}

// Converts a kernel of shape [kh, kw, C / groups, F] to a filter [F, kh, kw, C / groups] of this
// type.
TensorId AddFilter(const Node& node, ValueId kernel, ComputeDtype type,
                   CudaProgramBuilder& program) {
  TensorId& filter = program.filter(kernel, type);
  if (filter >= 0) return filter;
  const MatrixExtents extents(program.shape(kernel));
  filter = program.ScratchOf(type, program.count(kernel));
  WithElement(type, [&]<typename Element>(Element) {
    TensorList tensors;
    const auto from = tensors.Add(program.tensor(kernel));
    const auto to = tensors.Add<Element>(filter);
    AddKernel(
        node, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return TransposeKernel<float, Element>{extents.rows, extents.columns, at[from], at[to]};
        },
        program);
  });
  return filter;
}

// The reverse: converts `dfilter` to `dkernel`.
void AddKernelGradient(const Node& node, TensorId dfilter, ComputeDtype type,
                       const Shape& kernel_shape, TensorId dkernel, CudaProgramBuilder& program) {
  const MatrixExtents extents(kernel_shape);
  WithElement(type, [&]<typename Element>(Element) {
    TensorList tensors;
    const auto from = tensors.Add<Element>(dfilter);
    const auto to = tensors.Add(dkernel);
    AddKernel(
        node, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return TransposeKernel<Element, float>{extents.columns, extents.rows, at[from], at[to]};
        },
        program);
  });
}

}  // namespace

absl::Status Conv2D(const Node& node, CudaProgramBuilder& program) {
  const auto& op = static_cast<const Conv2DOp&>(*node.op);
  const Shape x = program.shape(node.inputs[0]), y = program.shape(node.outputs[0]);
  const bool bias = node.inputs.size() == 3;
  const bool relu = FindFusedRelu(op) != nullptr;
  const ComputeDtype kept = program.stored_dtype(node);
  const ConvolutionEpilogue ending = relu   ? ConvolutionEpilogue::kBiasAndRelu
                                     : bias ? ConvolutionEpilogue::kBias
                                            : ConvolutionEpilogue::kNone;
  SHOAL_ASSIGN_OR_RETURN(
      Pieces pieces,
      Prepare(node,
              DescribeConvolution(Pass::kForward, op.window,
                                  {.x = x, .kernel = program.shape(node.inputs[1]), .y = y}, kept,
                                  ending),
              program));
  if (pieces.kernel != nullptr) {
    std::vector<TensorId> tensors = {program.tensor(node.inputs[0], kept),
                                     AddFilter(node, node.inputs[1], kept, program)};
    if (bias) tensors.push_back(program.tensor(node.inputs[2], kept));
    tensors.push_back(program.Output(node.outputs[0], kept));
    AddConvolution(std::move(pieces), std::move(tensors), program);
    return absl::OkStatus();
  }
  TensorList tensors;
  const auto in = tensors.Add(program.tensor(node.inputs[0]));
  const auto kernel = tensors.Add(program.tensor(node.inputs[1]));
  TensorHandle<float> of_bias;
  if (bias) of_bias = tensors.Add(program.tensor(node.inputs[2]));
  const int64_t count = ElementCount(y);
  const TensorId sums = relu ? program.Scratch(count) : program.Output(node.outputs[0]);
  const auto out = tensors.Add(sums);
  AddKernel(
      node, std::move(tensors).Take(),
      [=, extents = ConvolutionExtents(op.window, op.groups, x, y[3])](const StepTensors& at) {
        return Conv2DKernel{extents, at[in], at[kernel], at[of_bias], at[out]};
      },
      program);
  if (!relu) return absl::OkStatus();
  TensorList last;
  const auto before = last.Add(sums), after = last.Add(program.Output(node.outputs[0]));
  AddKernel(
      node, std::move(last).Take(),
      [=](const StepTensors& at) {
        return ActivationKernel<float, 1>{at[before], at[after], count, ActivationAttributes()};
      },
      program);
  return absl::OkStatus();
}

absl::Status Conv2DBackwardData(const Node& node, CudaProgramBuilder& program) {
  const auto& op = static_cast<const Conv2DBackwardDataOp&>(*node.op);
  const Shape x = program.shape(node.outputs[0]), y = program.shape(node.inputs[0]);
  const ComputeDtype kept = program.stored_dtype(node);
  SHOAL_ASSIGN_OR_RETURN(
      Pieces pieces,
      Prepare(node,
              DescribeConvolution(Pass::kBackwardData, op.window,
                                  {.x = x, .kernel = program.shape(node.inputs[1]), .y = y}, kept),
              program));
  if (pieces.kernel != nullptr) {
    const TensorId dy = program.tensor(node.inputs[0], kept);
    const TensorId filter = AddFilter(node, node.inputs[1], kept, program);
    AddConvolution(std::move(pieces), {program.Output(node.outputs[0], kept), filter, dy}, program);
    return absl::OkStatus();
  }
  TensorList tensors;
  const auto dy = tensors.Add(program.tensor(node.inputs[0]));
  const auto kernel = tensors.Add(program.tensor(node.inputs[1]));
  const auto dx = tensors.Add(program.Output(node.outputs[0]));
  AddKernel(
      node, std::move(tensors).Take(),
      [=, extents = ConvolutionExtents(op.window, op.groups, x, y[3])](const StepTensors& at) {
        return Conv2DBackwardDataKernel{extents, at[dy], at[kernel], at[dx]};
      },
      program);
  return absl::OkStatus();
}

absl::Status Conv2DBackwardWeights(const Node& node, CudaProgramBuilder& program) {
  const auto& op = static_cast<const Conv2DBackwardWeightsOp&>(*node.op);
  const Shape x = program.shape(node.inputs[0]), y = program.shape(node.inputs[1]);
  const ComputeDtype type = node.compute_dtype;
  SHOAL_ASSIGN_OR_RETURN(
      Pieces pieces, Prepare(node,
                             DescribeConvolution(Pass::kBackwardFilter, op.window,
                                                 {.x = x, .kernel = op.kernel_shape, .y = y}, type),
                             program));
  const TensorId dkernel = program.Output(node.outputs[0]);
  if (pieces.kernel != nullptr) {
    const TensorId x_tensor = program.tensor(node.inputs[0], type);
    const TensorId dy = program.tensor(node.inputs[1], type);
    // cuDNN computes the gradient of the filter in the type of the images.
    const TensorId dfilter = program.ScratchOf(type, ElementCount(op.kernel_shape));
    AddConvolution(std::move(pieces), {x_tensor, dfilter, dy}, program);
    AddKernelGradient(node, dfilter, type, op.kernel_shape, dkernel, program);
    return absl::OkStatus();
  }
  TensorList tensors;
  const auto in = tensors.Add(program.tensor(node.inputs[0]));
  const auto of_dy = tensors.Add(program.tensor(node.inputs[1]));
  const auto out = tensors.Add(dkernel);
  AddKernel(
      node, std::move(tensors).Take(),
      [=, extents = ConvolutionExtents(op.window, op.groups, x, y[3])](const StepTensors& at) {
        return Conv2DBackwardWeightsKernel{extents, at[in], at[of_dy], at[out]};
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
