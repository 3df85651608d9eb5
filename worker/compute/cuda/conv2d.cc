// The three passes of a dense convolution, and a transposed one, which is the second of them.

#include "common/model/ops/conv2d.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/convolutions.h"
#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/conv2d.h"
#include "worker/compute/cuda/kernels/transpose.h"
#include "worker/compute/plan/fusions.h"

namespace shoal::cuda {
namespace {

using Pass = ConvolutionGraph::Pass;

// A pass as program.target().convolutions computes it, or, where it says that it does not, as plain
// sums do.
struct Pieces {
  ConvolutionGraph graph;
  std::unique_ptr<Kernel> kernel;  // null: plain sums
  TensorId workspace = -1;
};

absl::StatusOr<Pieces> Prepare(int index, ConvolutionGraph graph, CudaProgram& program) {
  Pieces pieces = {.graph = std::move(graph)};
  absl::StatusOr<Convolutions::Made> made =
      program.target().convolutions->Make(pieces.graph, program.name(index));
  if (absl::IsUnimplemented(made.status())) {
    program.target().on_plain_sums(program.name(index), made.status());
    return pieces;
  }
  SHOAL_RETURN_IF_ERROR(made.status());
  pieces.kernel = std::move(made->kernel);
  pieces.workspace = program.Scratch<char>(std::max<int64_t>(1, made->workspace_bytes));
  return pieces;
}

// Appends the step, whose tensors in memory are `tensors`.
void AddConvolution(Pieces pieces, std::vector<TensorId> tensors, CudaProgram& program) {
  tensors.push_back(pieces.workspace);
  program.builder().AddStep(std::move(pieces.kernel), std::move(tensors));
}

// `to` is the transpose of `from`, which has so many rows.
void AddTranspose(int index, TensorId from, TensorId to, int64_t rows, int64_t columns,
                  CudaProgram& program) {
  AddKernel(
      index, {from, to},
      [=](const StepTensors& at) {
        return TransposeKernel<float, float>{rows, columns, at[0], at[1]};
      },
      program);
}

// The kernel of shape [kh, kw, C / groups, F] as [F, kh, kw, C / groups].
TensorId AddFilter(int index, ValueId kernel, CudaProgram& program) {
  const MatrixExtents extents(program.shape(kernel));
  const TensorId filter = program.Scratch(program.count(kernel));
  AddTranspose(index, program.tensor(kernel), filter, extents.rows, extents.columns, program);
  return filter;
}

}  // namespace

std::vector<int> FindConvolutionRelus(const Plan& plan) {
  const std::vector<Node>& nodes = plan.graph().nodes();
  const Fusions fusions = FindFusions(plan);
  std::vector<int> relus(nodes.size(), -1);
  for (const int index : plan.nodes()) {
    const int relu = fusions.relu[index];
    if (relu < 0 || dynamic_cast<const Conv2DOp*>(nodes[index].op.get()) == nullptr ||
        nodes[index].inputs.size() != 3) {
      continue;
    }
    const auto& activation = static_cast<const ActivationOp&>(*nodes[relu].op);
    // Below 0: it is not cut off.
    if (activation.attributes.max_value < 0) relus[index] = relu;
  }
  return relus;
}

absl::Status Conv2D(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const auto& op = static_cast<const Conv2DOp&>(*node.op);
  const Shape x = program.shape(node.inputs[0]), y = program.shape(node.outputs[0]);
  const bool bias = node.inputs.size() == 3;
  const int relu = program.fused_relu(index);
  const ConvolutionEnding ending = relu >= 0 ? ConvolutionEnding::kBiasAndRelu
                                   : bias    ? ConvolutionEnding::kBias
                                             : ConvolutionEnding::kNone;
  SHOAL_ASSIGN_OR_RETURN(
      Pieces pieces,
      Prepare(index,
              DescribeConvolution(Pass::kForward, op.window,
                                  {.x = x, .kernel = program.shape(node.inputs[1]), .y = y},
                                  ComputeDtype::kFloat32, ending),
              program));
  std::vector<TensorId> tensors = {program.tensor(node.inputs[0])};
  if (pieces.kernel != nullptr) {
    tensors.push_back(AddFilter(index, node.inputs[1], program));
    if (bias) tensors.push_back(program.tensor(node.inputs[2]));
    if (relu < 0) {
      tensors.push_back(program.Output(node.outputs[0]));
    } else {
      // What else reads what went into the ReLU is its gradient, to which the result tells as much.
      tensors.push_back(program.Output(program.node(relu).outputs[0]));
      program.builder().Bind(node.outputs[0], tensors.back());
    }
    AddConvolution(std::move(pieces), std::move(tensors), program);
    return absl::OkStatus();
  }
  tensors.push_back(program.tensor(node.inputs[1]));
  if (bias) tensors.push_back(program.tensor(node.inputs[2]));
  tensors.push_back(program.Output(node.outputs[0]));
  AddKernel(
      index, std::move(tensors),
      [=, extents = ConvolutionExtents(op.window, op.groups, x, y[3])](const StepTensors& at) {
        return Conv2DKernel{extents, at[0], at[1], at.If(bias, 2), at[2 + bias]};
      },
      program);
  return relu < 0 ? absl::OkStatus() : Activation(relu, program);
}

absl::Status Conv2DBackwardData(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const auto& op = static_cast<const Conv2DBackwardDataOp&>(*node.op);
  const Shape x = program.shape(node.outputs[0]), y = program.shape(node.inputs[0]);
  SHOAL_ASSIGN_OR_RETURN(
      Pieces pieces,
      Prepare(index,
              DescribeConvolution(Pass::kBackwardData, op.window,
                                  {.x = x, .kernel = program.shape(node.inputs[1]), .y = y},
                                  ComputeDtype::kFloat32),
              program));
  const TensorId dy = program.tensor(node.inputs[0]), dx = program.Output(node.outputs[0]);
  if (pieces.kernel != nullptr) {
    const TensorId filter = AddFilter(index, node.inputs[1], program);
    AddConvolution(std::move(pieces), {dx, filter, dy}, program);
    return absl::OkStatus();
  }
  AddKernel(
      index, {dy, program.tensor(node.inputs[1]), dx},
      [extents = ConvolutionExtents(op.window, op.groups, x, y[3])](const StepTensors& at) {
        return Conv2DBackwardDataKernel{extents, at[0], at[1], at[2]};
      },
      program);
  return absl::OkStatus();
}

absl::Status Conv2DBackwardWeights(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const auto& op = static_cast<const Conv2DBackwardWeightsOp&>(*node.op);
  const Shape x = program.shape(node.inputs[0]), y = program.shape(node.inputs[1]);
  SHOAL_ASSIGN_OR_RETURN(Pieces pieces,
                         Prepare(index,
                                 DescribeConvolution(Pass::kBackwardFilter, op.window,
                                                     {.x = x, .kernel = op.kernel_shape, .y = y},
                                                     ComputeDtype::kFloat32),
                                 program));
  const TensorId x_tensor = program.tensor(node.inputs[0]), dy = program.tensor(node.inputs[1]);
  const TensorId dkernel = program.Output(node.outputs[0]);
  if (pieces.kernel != nullptr) {
    const MatrixExtents extents(op.kernel_shape);
    const TensorId dfilter = program.Scratch(extents.rows * extents.columns);
    AddConvolution(std::move(pieces), {x_tensor, dfilter, dy}, program);
    AddTranspose(index, dfilter, dkernel, extents.columns, extents.rows, program);
    return absl::OkStatus();
  }
  AddKernel(
      index, {x_tensor, dy, dkernel},
      [extents = ConvolutionExtents(op.window, op.groups, x, y[3])](const StepTensors& at) {
        return Conv2DBackwardWeightsKernel{extents, at[0], at[1], at[2]};
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
