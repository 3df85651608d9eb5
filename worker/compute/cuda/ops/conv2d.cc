// The three passes of a dense convolution, and a transposed convolution, which is the second of
// them.

#include "common/model/ops/conv2d.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/activation.h"
#include "worker/compute/cuda/kernels/conv2d.h"
#include "worker/compute/cuda/kernels/transpose.h"
#include "worker/compute/cuda/ops/convolutions.h"
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
    AddKernel(
        node, {program.tensor(kernel), filter},
        [=](const StepTensors& at) {
          return TransposeKernel<float, Element>{extents.rows, extents.columns, at[0],
                                                 at.At<Element>(1)};
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
    AddKernel(
        node, {dfilter, dkernel},
        [=](const StepTensors& at) {
          return TransposeKernel<Element, float>{extents.columns, extents.rows, at.At<Element>(0),
                                                 at[1]};
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
  std::vector<TensorId> tensors;
  if (pieces.kernel != nullptr) {
    tensors = {program.tensor(node.inputs[0], kept),
               AddFilter(node, node.inputs[1], kept, program)};
    if (bias) tensors.push_back(program.tensor(node.inputs[2], kept));
    tensors.push_back(program.Output(node.outputs[0], kept));
    AddConvolution(std::move(pieces), std::move(tensors), program);
    return absl::OkStatus();
  }
  for (const ValueId input : node.inputs) tensors.push_back(program.tensor(input));
  const int64_t count = ElementCount(y);
  const TensorId sums = relu ? program.Scratch(count) : program.Output(node.outputs[0]);
  tensors.push_back(sums);
  AddKernel(
      node, std::move(tensors),
      [=, extents = ConvolutionExtents(op.window, op.groups, x, y[3])](const StepTensors& at) {
        return Conv2DKernel{extents, at[0], at[1], at.If(bias, 2), at[2 + bias]};
      },
      program);
  if (!relu) return absl::OkStatus();
  AddKernel(
      node, {sums, program.Output(node.outputs[0])},
      [=](const StepTensors& at) {
        return ActivationKernel<float, 1>{at[0], at[1], count, ActivationAttributes()};
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
  AddKernel(
      node,
      {program.tensor(node.inputs[0]), program.tensor(node.inputs[1]),
       program.Output(node.outputs[0])},
      [extents = ConvolutionExtents(op.window, op.groups, x, y[3])](const StepTensors& at) {
        return Conv2DBackwardDataKernel{extents, at[0], at[1], at[2]};
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
  AddKernel(
      node, {program.tensor(node.inputs[0]), program.tensor(node.inputs[1]), dkernel},
      [extents = ConvolutionExtents(op.window, op.groups, x, y[3])](const StepTensors& at) {
        return Conv2DBackwardWeightsKernel{extents, at[0], at[1], at[2]};
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
