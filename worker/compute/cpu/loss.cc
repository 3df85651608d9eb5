#include "common/model/ops/loss.h"

#include <algorithm>

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/op_math/loss_functions.h"

namespace shoal::cpu {
namespace {

// The min number of rows for another thread. A row takes some microseconds.
constexpr int64_t kLossRowGrain = 64;

}  // namespace

absl::Status Loss(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const LossAttributes attributes = static_cast<const LossOp&>(*node.op).attributes;
  const Shape shape = builder.shape(node.inputs[0]);
  const int64_t length = LossRowLength(shape);
  const int64_t inner = ElementCount(shape) / length / shape[0];  // rows of one example
  AddLoopStep(
      shape[0], std::max<int64_t>(1, kLossRowGrain / inner),
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [attributes, length, inner](const RunContext&, const LoopTensors& data, int64_t begin,
                                  int64_t end) {
        LossRow<float> row(attributes, length);
        for (int64_t example = begin; example < end; ++example) {
          double sum = 0;
          for (int64_t r = example * inner; r < (example + 1) * inner; ++r) {
            sum += row.Loss(data[0] + r * length, data[1] + r * row.target_stride());
          }
          data[2][example] = static_cast<float>(sum / inner);
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status LossBackward(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto& op = static_cast<const LossBackwardOp&>(*node.op);
  const Shape shape = builder.shape(node.inputs[0]);
  const int64_t length = LossRowLength(shape);
  const int64_t rows = ElementCount(shape) / length;
  const double scale = (op.of_sum ? static_cast<double>(shape[0]) : 1.0) / rows;
  AddLoopStep(
      rows, kLossRowGrain,
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [attributes = op.attributes, length, scale](const RunContext&, const LoopTensors& data,
                                                  int64_t begin, int64_t end) {
        LossRow<float> row(attributes, length);
        for (int64_t r = begin; r < end; ++r) {
          row.Gradient(data[0] + r * length, data[1] + r * row.target_stride(), scale,
                       data[2] + r * length);
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
