#include <algorithm>
#include <cmath>

#include "worker/compute/cpu/loop_kernel.h"

namespace shoal::cpu {
namespace {

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

absl::Status Glu(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const auto [rows, half] = CpuProgram::ExtentsOf(builder.shape(node.outputs[0]));
  AddLoopStep(
      rows, std::max<int64_t>(1, kElementGrain / half),
      {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [half = half](const RunContext&, float* const* data, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const float* x = data[0] + 2 * row * half;
          for (int64_t i = 0; i < half; ++i) data[1][row * half + i] = x[i] * Sigmoid(x[half + i]);
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status GluBackward(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const auto [rows, half] = CpuProgram::ExtentsOf(builder.shape(node.inputs[1]));
  AddLoopStep(
      rows, std::max<int64_t>(1, kElementGrain / half),
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [half = half](const RunContext&, float* const* data, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const float* x = data[0] + 2 * row * half;
          const float* dy = data[1] + row * half;
          float* dx = data[2] + 2 * row * half;
          for (int64_t i = 0; i < half; ++i) {
            const float sigmoid = Sigmoid(x[half + i]);
            dx[i] = dy[i] * sigmoid;
            dx[half + i] = dy[i] * x[i] * sigmoid * (1 - sigmoid);
          }
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
