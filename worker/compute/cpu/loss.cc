#include <algorithm>
#include <cmath>

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/loss_functions.h"

namespace shoal::cpu {
namespace {

// Rows for which another thread is worth its waking: some microseconds each.
constexpr int64_t kRowGrain = 64;

void SoftmaxRow(const float* x, int64_t columns, float* y) {
  const float largest = *std::max_element(x, x + columns);
  float sum = 0;
  for (int64_t i = 0; i < columns; ++i) sum += y[i] = std::exp(x[i] - largest);
  for (int64_t i = 0; i < columns; ++i) y[i] /= sum;
}

void SoftmaxBackwardRow(const float* y, const float* dy, int64_t columns, float* dx) {
  float dot = 0;
  for (int64_t i = 0; i < columns; ++i) dot += y[i] * dy[i];
  for (int64_t i = 0; i < columns; ++i) dx[i] = y[i] * (dy[i] - dot);
}

absl::Status Softmax(int index, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Node& node = builder.graph().nodes()[index];
  const Shape shape = builder.shape(node.outputs[0]);
  AddLoopStep(
      ElementCount(shape) / shape.back(), kRowGrain,
      {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [columns = shape.back()](const RunContext&, float* const* data, int64_t begin, int64_t end) {
        for (int64_t i = begin * columns; i < end * columns; i += columns) {
          SoftmaxRow(data[0] + i, columns, data[1] + i);
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status SoftmaxBackward(int index, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Node& node = builder.graph().nodes()[index];
  const Shape shape = builder.shape(node.outputs[0]);
  AddLoopStep(
      ElementCount(shape) / shape.back(), kRowGrain,
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [columns = shape.back()](const RunContext&, float* const* data, int64_t begin, int64_t end) {
        for (int64_t i = begin * columns; i < end * columns; i += columns) {
          SoftmaxBackwardRow(data[0] + i, data[1] + i, columns, data[2] + i);
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status Loss(int index, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Node& node = builder.graph().nodes()[index];
  const LossAttributes attributes = static_cast<const LossOp&>(*node.op).attributes;
  const Shape shape = builder.shape(node.inputs[0]);
  const int64_t length = LossRowLength(shape);
  const int64_t inner = ElementCount(shape) / length / shape[0];  // rows of one example
  AddLoopStep(
      shape[0], std::max<int64_t>(1, kRowGrain / inner),
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [attributes, length, inner](const RunContext&, float* const* data, int64_t begin,
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

absl::Status LossBackward(int index, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Node& node = builder.graph().nodes()[index];
  const LossAttributes attributes = static_cast<const LossBackwardOp&>(*node.op).attributes;
  const Shape shape = builder.shape(node.inputs[0]);
  const int64_t length = LossRowLength(shape);
  const int64_t rows = ElementCount(shape) / length;
  AddLoopStep(
      rows, kRowGrain,
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [attributes, length, rows](const RunContext&, float* const* data, int64_t begin,
                                 int64_t end) {
        LossRow<float> row(attributes, length);
        for (int64_t r = begin; r < end; ++r) {
          row.Gradient(data[0] + r * length, data[1] + r * row.target_stride(), 1.0 / rows,
                       data[2] + r * length);
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace

void AddLossFactories(StepFactories& factories) {
  factories["Softmax"] = Softmax;
  factories["SoftmaxBackward"] = SoftmaxBackward;
  factories["Loss"] = Loss;
  factories["LossBackward"] = LossBackward;
}

}  // namespace shoal::cpu
