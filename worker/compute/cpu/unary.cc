#include "common/model/ops/unary.h"

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/op_math/elementwise_functions.h"

namespace shoal::cpu {
absl::Status Unary(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  AddLoopStep(
      ElementCount(builder.shape(node.outputs[0])), kElementGrain,
      {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [op = static_cast<const UnaryOp&>(*node.op)](const RunContext&, float* const* data,
                                                   int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) data[1][i] = shoal::Unary(op, data[0][i]);
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
