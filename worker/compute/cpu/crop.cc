#include <algorithm>

#include "worker/compute/cpu/loop_kernel.h"

namespace shoal::cpu {

// The rows that are left of each image, one after the other.
absl::Status Crop(int index, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Node& node = program.graph().nodes()[index];
  const Shape from = builder.shape(node.inputs[0]), to = builder.shape(node.outputs[0]);
  AddLoopStep(
      to[0] * to[1], std::max<int64_t>(1, kElementGrain / (to[2] * to[3])),
      {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [from, to](const RunContext&, float* const* data, int64_t begin, int64_t end) {
        const int64_t from_row = from[2] * from[3], to_row = to[2] * to[3];
        for (int64_t row = begin; row < end; ++row) {
          const int64_t source = row / to[1] * from[1] + row % to[1];
          std::copy_n(data[0] + source * from_row, to_row, data[1] + row * to_row);
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
