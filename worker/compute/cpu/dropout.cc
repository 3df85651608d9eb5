#include "common/model/ops/dropout.h"

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/op_math/dropout_mask.h"

namespace shoal::cpu {
namespace {

// `first` is the number of the step's elements before x.
SHOAL_VECTORIZED void DropoutLoop(DropoutMask mask, int64_t first, const float* x, int64_t begin,
                                  int64_t end, float* y) {
  for (int64_t i = begin; i < end; ++i) y[i] = x[i] * mask.Factor<float>(first + i);
}

void GroupedDropoutLoop(DropoutMask mask, DropoutGroups groups, int64_t first, const float* x,
                        int64_t begin, int64_t end, float* y) {
  for (int64_t i = begin; i < end; ++i) y[i] = x[i] * mask.Factor<float>(groups.Of(first + i));
}

// The mask depends on the position in the row-major tensor of the whole batch. Backward computes
// the same product.
template <typename DropoutOpType>
absl::Status AddDropoutStep(const Node& node, CpuProgram& program) {
  const auto& op = static_cast<const DropoutOpType&>(*node.op);
  ProgramBuilder& builder = program.builder();
  const TensorId x = program.RowMajor(node.inputs[0]);
  if (!builder.training()) {
    builder.Bind(node.outputs[0], x);
    return absl::OkStatus();
  }
  const TensorId y = builder.Output(node.outputs[0]);
  const Shape shape = builder.shape(node.outputs[0]);
  AddLoopStep(
      ElementCount(shape), kElementGrain, {x, y},
      [rate = op.rate, seed = op.layer_seed, groups = op.groups,
       elements = ElementCount(shape) / shape[0]](
          const RunContext& context, const LoopTensors& data, int64_t begin, int64_t end) {
        const DropoutMask mask(context, seed, rate);
        const int64_t first = context.first_example * elements;
        if (groups.block == 1) {
          DropoutLoop(mask, first, data[0], begin, end, data[1]);
        } else {
          GroupedDropoutLoop(mask, groups, first, data[0], begin, end, data[1]);
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace

absl::Status Dropout(const Node& node, CpuProgram& program) {
  return AddDropoutStep<DropoutOp>(node, program);
}

absl::Status DropoutBackward(const Node& node, CpuProgram& program) {
  return AddDropoutStep<DropoutBackwardOp>(node, program);
}

}  // namespace shoal::cpu
