// Elementwise ops.

#include "common/model/ops/rescale.h"

#include "common/base/status_macros.h"
#include "common/model/ops/activation.h"
#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/activation.h"
#include "worker/compute/cuda/kernels/binary.h"
#include "worker/compute/cuda/kernels/elements.h"
#include "worker/compute/cuda/kernels/strided.h"

namespace shoal::cuda {
namespace {

template <typename DropoutOpType>
absl::Status ApplyDropout(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  if (!program.builder().training()) {
    program.Bind(node.outputs[0], node.inputs[0]);
    return absl::OkStatus();
  }
  const auto& op = static_cast<const DropoutOpType&>(*node.op);
  const int64_t count = program.count(node.outputs[0]);
  const int64_t example_size = count / program.shape(node.outputs[0])[0];
  AddKernel(
      index, {program.tensor(node.inputs[0]), program.Output(node.outputs[0])},
      [=, layer_seed = op.layer_seed, rate = op.rate, groups = op.groups](const StepTensors& at) {
        return DropoutKernel{at.context(), layer_seed, rate,  groups,
                             example_size, at[0],      at[1], count};
      },
      program);
  return absl::OkStatus();
}

// y = a `kind` b, all of the same shape and of type Element.
template <BinaryOp::Kind kind, typename Element>
void AddBinary(int index, TensorId a, TensorId b, TensorId y, int64_t count, CudaProgram& program) {
  WithWidth<Element>(count, [&]<int width>(std::integral_constant<int, width>) {
    AddKernel(
        index, {a, b, y},
        [=](const StepTensors& at) {
          return BinaryKernel<kind, Element, width>{at.At<Element>(0), at.At<Element>(1), count,
                                                    at.At<Element>(2)};
        },
        program);
  });
}

}  // namespace

absl::Status Activation(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const int64_t count = program.count(node.outputs[0]);
  const ActivationAttributes attributes = static_cast<const ActivationOp&>(*node.op).attributes;
  const ComputeDtype kept = program.stored_dtype(index);
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    AddKernel(
        index, {program.tensor(node.inputs[0], kept), program.Output(node.outputs[0], kept)},
        [=](const StepTensors& at) {
          return ActivationKernel<Element, width>{at.At<Element>(0), at.At<Element>(1), count,
                                                  attributes};
        },
        program);
  };
  WithPacks(kept, count, add);
  return absl::OkStatus();
}

absl::Status ActivationBackward(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const int64_t count = program.count(node.outputs[0]);
  const auto attributes = static_cast<const ActivationBackwardOp&>(*node.op).attributes;
  const ComputeDtype kept = program.stored_dtype(index);
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    AddKernel(
        index,
        {program.tensor(node.inputs[0], kept), program.tensor(node.inputs[1], kept),
         program.tensor(node.inputs[2], kept), program.Output(node.outputs[0], kept)},
        [=](const StepTensors& at) {
          return ActivationBackwardKernel<Element, width>{
              at.At<Element>(0), at.At<Element>(1), at.At<Element>(2), at.At<Element>(3), count,
              attributes};
        },
        program);
  };
  WithPacks(kept, count, add);
  return absl::OkStatus();
}

absl::Status Add(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const int64_t count = program.count(node.outputs[0]);
  if (node.inputs.size() == 1) {
    program.Bind(node.outputs[0], node.inputs[0]);
    return absl::OkStatus();
  }
  const ComputeDtype kept = program.stored_dtype(index);
  TensorId sum = program.tensor(node.inputs[0], kept);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const bool last = i + 1 == node.inputs.size();
    const TensorId y =
        last ? program.Output(node.outputs[0], kept) : program.ScratchOf(kept, count);
    const TensorId other = program.tensor(node.inputs[i], kept);
    WithElement(kept, [&]<typename Element>(Element) {
      AddBinary<BinaryOp::Kind::kAdd, Element>(index, sum, other, y, count, program);
    });
    sum = y;
  }
  return absl::OkStatus();
}

absl::Status Binary(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const Shape shape = program.shape(node.outputs[0]);
  const Shape a = program.shape(node.inputs[0]), b = program.shape(node.inputs[1]);
  const int64_t count = ElementCount(shape);
  SHOAL_ASSIGN_OR_RETURN(const StridedAxes a_axes, RepeatedAxes(a, shape));
  SHOAL_ASSIGN_OR_RETURN(const StridedAxes b_axes, RepeatedAxes(b, shape));
  const bool of_one_shape = ElementCount(a) == count && ElementCount(b) == count;
  const ComputeDtype kept = of_one_shape ? program.stored_dtype(index) : ComputeDtype::kFloat32;
  const std::vector<TensorId> tensors = {program.tensor(node.inputs[0], kept),
                                         program.tensor(node.inputs[1], kept),
                                         program.Output(node.outputs[0], kept)};
  WithConstantKind(
      static_cast<const BinaryOp&>(*node.op).kind,
      [&]<BinaryOp::Kind kind>(std::integral_constant<BinaryOp::Kind, kind>) {
        if (of_one_shape) {
          WithElement(kept, [&]<typename Element>(Element) {
            AddBinary<kind, Element>(index, tensors[0], tensors[1], tensors[2], count, program);
          });
          return;
        }
        AddKernel(
            index, tensors,
            [=](const StepTensors& at) {
              return RepeatedBinaryKernel<kind>{at[0], a_axes, at[1], b_axes, at[2], count};
            },
            program);
      });
  return absl::OkStatus();
}

absl::Status Unary(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const auto& op = static_cast<const UnaryOp&>(*node.op);
  const UnaryAttributes attributes = {op.kind, op.exponent, op.low, op.high};
  const int64_t count = program.count(node.outputs[0]);
  AddKernel(
      index, {program.tensor(node.inputs[0]), program.Output(node.outputs[0])},
      [=](const StepTensors& at) {
        return UnaryKernel{attributes, at[0], at[1], count};
      },
      program);
  return absl::OkStatus();
}

absl::Status Dropout(int index, CudaProgram& program) {
  return ApplyDropout<DropoutOp>(index, program);
}

absl::Status DropoutBackward(int index, CudaProgram& program) {
  return ApplyDropout<DropoutBackwardOp>(index, program);
}

absl::Status RandomUniform(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const auto& op = static_cast<const RandomUniformOp&>(*node.op);
  const int64_t numbers = static_cast<int64_t>(op.ranges.size());
  const int64_t examples = program.count(node.outputs[0]) / numbers;
  const TensorId y = program.Output(node.outputs[0]);
  for (int64_t number = 0; number < numbers; ++number) {
    AddKernel(
        index, {y},
        [=, layer_seed = op.layer_seed, range = op.ranges[number], whole = op.whole,
         one_of_batch = op.one_of_batch](const StepTensors& at) {
          return RandomUniformKernel{at.context(), layer_seed, range, whole,   one_of_batch,
                                     number,       numbers,    at[0], examples};
        },
        program);
  }
  return absl::OkStatus();
}

absl::Status Glu(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const int64_t half = program.shape(node.outputs[0]).back();
  const int64_t count = program.count(node.outputs[0]);
  AddKernel(
      index, {program.tensor(node.inputs[0]), program.Output(node.outputs[0])},
      [=](const StepTensors& at) {
        return GluKernel{at[0], at[1], half, count};
      },
      program);
  return absl::OkStatus();
}

absl::Status GluBackward(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const int64_t half = program.shape(node.inputs[1]).back();
  const int64_t count = program.count(node.inputs[1]);
  AddKernel(
      index,
      {program.tensor(node.inputs[0]), program.tensor(node.inputs[1]),
       program.Output(node.outputs[0])},
      [=](const StepTensors& at) {
        return GluBackwardKernel{at[0], at[1], at[2], half, count};
      },
      program);
  return absl::OkStatus();
}

absl::Status Rescale(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const auto& op = static_cast<const RescaleOp&>(*node.op);
  const ComputeDtype kept = program.stored_dtype(index);
  const TensorId x = program.tensor(node.inputs[0]), y = program.Output(node.outputs[0], kept);
  MatrixExtents extents(program.shape(node.outputs[0]));
  if (op.scale.size() == 1 && op.offset.size() == 1) {
    extents.columns *= std::exchange(extents.rows, 1);
    std::swap(extents.rows, extents.columns);
  }
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    using Kernel = RescaleKernel<Element, width>;
    for (int64_t first = 0; first < extents.columns; first += Kernel::kMaxChannels) {
      const auto channels =
          static_cast<int32_t>(std::min<int64_t>(extents.columns - first, Kernel::kMaxChannels));
      Kernel kernel = {.rows = extents.rows,
                       .columns = extents.columns,
                       .first = first,
                       .channels = channels,
                       .by_channels = Divisor(channels)};
      for (int32_t i = 0; i < channels; ++i) {
        kernel.scale[i] = static_cast<float>(op.scale[op.scale.size() == 1 ? 0 : first + i]);
        kernel.offset[i] = static_cast<float>(op.offset[op.offset.size() == 1 ? 0 : first + i]);
      }
      AddKernel(
          index, {x, y},
          [=](const StepTensors& at) {
            Kernel placed = kernel;
            placed.x = at[0];
            placed.y = at.At<Element>(1);
            return placed;
          },
          program);
    }
  };
  // Width one if the channels are split into several parts.
  const bool whole = extents.columns <= RescaleKernel<float, 1>::kMaxChannels;
  WithPacks(kept, whole ? extents.rows * extents.columns : 1, add);
  return absl::OkStatus();
}

absl::Status MeanGradient(int index, CudaProgram& program) {
  const ValueId output = program.node(index).outputs[0];
  const float share = 1.0f / static_cast<float>(program.shape(output)[0]);
  const int64_t count = program.count(output);
  AddKernel(
      index, {program.Output(output)},
      [=](const StepTensors& at) {
        return FillKernel<float, 1>{share, at[0], count};
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
