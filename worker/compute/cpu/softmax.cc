#include "common/model/ops/softmax.h"

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/op_math/softmax_rows.h"

namespace shoal::cpu {
namespace {

// The min number of rows for another thread. A row takes some microseconds.
constexpr int64_t kRowGrain = 64;

}  // namespace

absl::Status Softmax(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Shape shape = builder.shape(node.outputs[0]);
  AddLoopStep(
      ElementCount(shape) / shape.back(), kRowGrain,
      {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [kind = static_cast<const SoftmaxOp&>(*node.op).kind, columns = shape.back()](
          const RunContext&, float* const* data, int64_t begin, int64_t end) {
        for (int64_t i = begin * columns; i < end * columns; i += columns) {
          SoftmaxRow<float>(kind, data[0] + i, columns, data[1] + i);
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status SoftmaxBackward(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Shape shape = builder.shape(node.outputs[0]);
  AddLoopStep(
      ElementCount(shape) / shape.back(), kRowGrain,
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [kind = static_cast<const SoftmaxBackwardOp&>(*node.op).kind, columns = shape.back()](
          const RunContext&, float* const* data, int64_t begin, int64_t end) {
        for (int64_t i = begin * columns; i < end * columns; i += columns) {
          SoftmaxBackwardRow<float>(kind, data[0] + i, data[1] + i, columns, data[2] + i);
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
