#include <algorithm>
#include <cmath>

#include "worker/compute/cpu/loop_kernel.h"

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

}  // namespace

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

}  // namespace shoal::cpu
