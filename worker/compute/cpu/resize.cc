#include "common/model/ops/resize.h"

#include <algorithm>

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/op_math/resize_sources.h"

namespace shoal::cpu {
namespace {

// to += weight * from
SHOAL_VECTORIZED void AddScaled(const float* from, float weight, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] += weight * from[i];
}

}  // namespace

absl::Status Resize(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const auto interpolation = static_cast<const ResizeOp&>(*node.op).interpolation;
  const Shape x = builder.shape(node.inputs[0]), y = builder.shape(node.outputs[0]);
  AddLoopStep(
      y[0] * y[1], std::max<int64_t>(1, kElementGrain / (y[2] * y[3])),
      {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [x, y, rows = ResizeSources(interpolation, x[1], y[1]),
       columns = ResizeSources(interpolation, x[2], y[2])](const RunContext&, float* const* data,
                                                           int64_t begin, int64_t end) {
        std::fill(data[1] + begin * y[2] * y[3], data[1] + end * y[2] * y[3], 0.0f);
        for (int64_t row = begin; row < end; ++row) {
          const ResizeSource& source = rows[row % y[1]];
          for (int64_t column = 0; column < y[2]; ++column) {
            float* to = data[1] + (row * y[2] + column) * y[3];
            for (const int a : {0, 1}) {
              const float* line = data[0] + (row / y[1] * x[1] + source.index[a]) * x[2] * x[3];
              for (const int e : {0, 1}) {
                const double weight = source.weight[a] * columns[column].weight[e];
                if (weight == 0) continue;
                AddScaled(line + columns[column].index[e] * x[3], static_cast<float>(weight), x[3],
                          to);
              }
            }
          }
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status ResizeBackward(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const auto interpolation = static_cast<const ResizeBackwardOp&>(*node.op).interpolation;
  const Shape x = builder.shape(node.outputs[0]), y = builder.shape(node.inputs[0]);
  AddLoopStep(
      x[0], std::max<int64_t>(1, kElementGrain / (y[1] * y[2] * y[3])),
      {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [x, y, rows = ResizeSources(interpolation, x[1], y[1]),
       columns = ResizeSources(interpolation, x[2], y[2])](const RunContext&, float* const* data,
                                                           int64_t begin, int64_t end) {
        const int64_t image = x[1] * x[2] * x[3];
        std::fill(data[1] + begin * image, data[1] + end * image, 0.0f);
        for (int64_t row = begin * y[1]; row < end * y[1]; ++row) {
          const ResizeSource& source = rows[row % y[1]];
          for (int64_t column = 0; column < y[2]; ++column) {
            const float* from = data[0] + (row * y[2] + column) * y[3];
            for (const int a : {0, 1}) {
              float* line = data[1] + (row / y[1] * x[1] + source.index[a]) * x[2] * x[3];
              for (const int e : {0, 1}) {
                const double weight = source.weight[a] * columns[column].weight[e];
                if (weight == 0) continue;
                AddScaled(from, static_cast<float>(weight), x[3],
                          line + columns[column].index[e] * x[3]);
              }
            }
          }
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
