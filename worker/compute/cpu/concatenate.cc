#include "common/model/ops/concatenate.h"

#include <algorithm>
#include <vector>

#include "worker/compute/cpu/loop_kernel.h"

namespace shoal::cpu {

absl::Status Concatenate(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const int axis = static_cast<const ConcatenateOp&>(*node.op).axis;
  const Shape shape = builder.shape(node.outputs[0]);
  const int64_t outer = ElementCount(Shape(shape.begin(), shape.begin() + axis));
  std::vector<TensorId> tensors;
  std::vector<int64_t> runs;  // by input: elements that are contiguous in the output
  for (const ValueId input : node.inputs) {
    tensors.push_back(program.RowMajor(input));
    runs.push_back(ElementCount(builder.shape(input)) / outer);
  }
  tensors.push_back(builder.Output(node.outputs[0]));
  const int64_t row = ElementCount(shape) / outer;
  AddLoopStep(
      outer, std::max<int64_t>(1, kElementGrain / row), std::move(tensors),
      [runs, row](const RunContext&, float* const* data, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          float* y = data[runs.size()] + i * row;
          for (size_t input = 0; input < runs.size(); ++input) {
            y = std::copy_n(data[input] + i * runs[input], runs[input], y);
          }
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
