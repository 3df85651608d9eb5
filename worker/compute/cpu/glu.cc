#include <algorithm>

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/vector_math.h"

namespace shoal::cpu {
namespace {

// y = a * sigmoid(b)
SHOAL_VECTORIZED void GluRow(const float* a, const float* b, int64_t half, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < half; ++i) y[i] = a[i] * Sigmoid(b[i]);
}

SHOAL_VECTORIZED void GluRowGradient(const float* a, const float* b, const float* dy, int64_t half,
                                     float* da, float* db) {
#pragma omp simd
  for (int64_t i = 0; i < half; ++i) {
    const float sigmoid = Sigmoid(b[i]);
    da[i] = dy[i] * sigmoid;
    db[i] = dy[i] * a[i] * sigmoid * (1 - sigmoid);
  }
}

}  // namespace

absl::Status Glu(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto [rows, half] = CpuProgramBuilder::ExtentsOf(builder.shape(node.outputs[0]));
  AddLoopStep(
      rows, std::max<int64_t>(1, kElementGrain / half),
      {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [half = half](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const float* x = data[0] + 2 * row * half;
          GluRow(x, x + half, half, data[1] + row * half);
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status GluBackward(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto [rows, half] = CpuProgramBuilder::ExtentsOf(builder.shape(node.inputs[1]));
  AddLoopStep(
      rows, std::max<int64_t>(1, kElementGrain / half),
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [half = half](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const float* x = data[0] + 2 * row * half;
          float* dx = data[2] + 2 * row * half;
          GluRowGradient(x, x + half, data[1] + row * half, half, dx, dx + half);
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
