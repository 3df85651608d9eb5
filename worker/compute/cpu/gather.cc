#include <algorithm>
#include <limits>

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/op_math/row_of_id.h"

namespace shoal::cpu {

absl::Status Gather(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto [rows, columns] = CpuProgramBuilder::ExtentsOf(builder.shape(node.inputs[0]));
  AddLoopStep(
      ElementCount(builder.shape(node.inputs[1])), std::max<int64_t>(1, kElementGrain / columns),
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [rows = rows, columns = columns](const RunContext&, const LoopTensors& data, int64_t begin,
                                       int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          float* y = data[2] + i * columns;
          const int64_t row = RowOfId(data[1][i], rows);
          if (row < 0) {
            std::fill_n(y, columns, std::numeric_limits<float>::quiet_NaN());
          } else {
            std::copy_n(data[0] + row * columns, columns, y);
          }
        }
      },
      program);
  return absl::OkStatus();
}

// Each thread handles some rows of the table, so no two threads add to the same row. It scans all
// ids, which costs little compared with clearing the rows.
absl::Status GatherBackward(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto [rows, columns] = CpuProgramBuilder::ExtentsOf(builder.shape(node.outputs[0]));
  const int64_t ids = ElementCount(builder.shape(node.inputs[0]));
  AddLoopStep(
      rows, std::max<int64_t>(1, kElementGrain / columns),
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [rows = rows, columns = columns, ids](const RunContext&, const LoopTensors& data,
                                            int64_t begin, int64_t end) {
        std::fill(data[2] + begin * columns, data[2] + end * columns, 0.0f);
        for (int64_t i = 0; i < ids; ++i) {
          const int64_t row = RowOfId(data[0][i], rows);
          if (row < begin || row >= end) continue;
          const float* dy = data[1] + i * columns;
          float* to = data[2] + row * columns;
          for (int64_t c = 0; c < columns; ++c) to[c] += dy[c];
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
