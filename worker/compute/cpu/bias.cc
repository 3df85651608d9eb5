#include <algorithm>

#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/loop_kernel.h"

namespace shoal::cpu {
namespace {

template <typename Element>
SHOAL_INLINE void AddRowsOf(const Element* dy, int64_t rows, int64_t stride, int64_t columns,
                            float* sum) {
  std::fill_n(sum, columns, 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t n = 0; n < columns; ++n) sum[n] += ToFloat(dy[row * stride + n]);
  }
}
SHOAL_VECTORIZED void AddRows(const float* dy, int64_t rows, int64_t stride, int64_t columns,
                              float* sum) {
  AddRowsOf(dy, rows, stride, columns, sum);
}
SHOAL_VECTORIZED void AddRows(const BFloat16* dy, int64_t rows, int64_t stride, int64_t columns,
                              float* sum) {
  AddRowsOf(dy, rows, stride, columns, sum);
}

}  // namespace

absl::Status BiasBackward(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto [rows, columns] = CpuProgramBuilder::ExtentsOf(builder.shape(node.inputs[0]));
  WithElement(node.compute_dtype, [&, rows = rows, columns = columns]<typename Element>(Element) {
    AddLoopStep(
        columns, std::max<int64_t>(16, kElementGrain / rows),
        {program.RowMajor(node.inputs[0], node.compute_dtype), builder.Output(node.outputs[0])},
        [rows, columns](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          AddRows(data.At<Element>(0) + begin, rows, columns, end - begin, data[1] + begin);
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cpu
