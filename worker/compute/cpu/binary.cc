#include "common/model/ops/binary.h"

#include <algorithm>
#include <type_traits>

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/repetition.h"
#include "worker/compute/op_math/elementwise_functions.h"

namespace shoal::cpu {
namespace {

template <BinaryOp::Kind kind, int stride_a, int stride_b>
void Loop(const float* a, const float* b, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = shoal::Binary<kind>(a[i * stride_a], b[i * stride_b]);
  }
}

// Selects a loop over columns. Each operand either advances along the columns or repeats one value.
template <BinaryOp::Kind kind>
auto LoopOf(const Repetition& repetition) {
  const bool a = repetition.column_stride(0) == 1, b = repetition.column_stride(1) == 1;
  return a ? (b ? Loop<kind, 1, 1> : Loop<kind, 1, 0>) : (b ? Loop<kind, 0, 1> : Loop<kind, 0, 0>);
}

}  // namespace

absl::Status Binary(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Repetition repetition(builder.shape(node.outputs[0]),
                              {builder.shape(node.inputs[0]), builder.shape(node.inputs[1])});
  const std::vector<TensorId> tensors = {program.RowMajor(node.inputs[0]),
                                         program.RowMajor(node.inputs[1]),
                                         builder.Output(node.outputs[0])};
  WithConstantKind(static_cast<const BinaryOp&>(*node.op).kind, [&](auto kind) {
    const auto loop = LoopOf<kind()>(repetition);
    const int64_t columns = repetition.columns();
    if (repetition.rows() == 1) {
      const int64_t a = repetition.column_stride(0), b = repetition.column_stride(1);
      return AddLoopStep(
          columns, kElementGrain, tensors,
          [=](const RunContext&, float* const* data, int64_t begin, int64_t end) {
            loop(data[0] + a * begin, data[1] + b * begin, end - begin, data[2] + begin);
          },
          program);
    }
    AddLoopStep(
        repetition.rows(), std::max<int64_t>(1, kElementGrain / columns), tensors,
        [=](const RunContext&, float* const* data, int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            loop(data[0] + repetition.RowOffset(0, row), data[1] + repetition.RowOffset(1, row),
                 columns, data[2] + row * columns);
          }
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cpu
