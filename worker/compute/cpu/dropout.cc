#include "common/model/ops/dropout.h"

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/dropout_mask.h"

namespace shoal::cpu {
namespace {

SHOAL_VECTORIZED void DropoutLoop(DropoutMask mask, const float* x, int64_t begin, int64_t end,
                                  float* y) {
  for (int64_t i = begin; i < end; ++i) y[i] = x[i] * mask.Factor<float>(i);
}

// The mask goes by the position in the row-major tensor. Backward is the same product.
void AddDropoutStep(const Node& node, double rate, uint64_t layer_seed, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const TensorId x = program.RowMajor(node.inputs[0]);
  if (!builder.training()) {
    builder.Bind(node.outputs[0], x);
    return;
  }
  const TensorId y = builder.Output(node.outputs[0]);
  AddLoopStep(
      ElementCount(builder.shape(node.outputs[0])), kElementGrain, {x, y},
      [rate, layer_seed](const RunContext& context, float* const* data, int64_t begin,
                         int64_t end) {
        DropoutLoop(DropoutMask(context.job_seed, context.step, layer_seed, rate), data[0], begin,
                    end, data[1]);
      },
      program);
}

}  // namespace

absl::Status Dropout(int index, CpuProgram& program) {
  const Node& node = program.graph().nodes()[index];
  const auto& op = static_cast<const DropoutOp&>(*node.op);
  AddDropoutStep(node, op.rate, op.layer_seed, program);
  return absl::OkStatus();
}

absl::Status DropoutBackward(int index, CpuProgram& program) {
  const Node& node = program.graph().nodes()[index];
  const auto& op = static_cast<const DropoutBackwardOp&>(*node.op);
  AddDropoutStep(node, op.rate, op.layer_seed, program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
