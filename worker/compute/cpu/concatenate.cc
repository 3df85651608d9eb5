#include "common/model/ops/concatenate.h"

#include <algorithm>
#include <vector>

#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/image_blocks.h"
#include "worker/compute/cpu/loop_kernel.h"

namespace shoal::cpu {
namespace {

// The block of the parts. Along the channels, all parts but the last must be whole blocks.
int64_t BlockOfParts(const ConcatenateOp& op, const Node& node, CpuProgramBuilder& program) {
  const int64_t block = BlockFor(node.inputs, node.outputs[0], program);
  if (block == 0 || op.axis != 3) return block;
  for (size_t i = 0; i + 1 < node.inputs.size(); ++i) {
    if (program.builder().shape(node.inputs[i])[3] % block != 0) return 0;
  }
  return block;
}

}  // namespace

absl::Status Concatenate(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto& op = static_cast<const ConcatenateOp&>(*node.op);
  const int64_t block = BlockOfParts(op, node, program);
  // Blocked images have the axis of the channels first.
  const int axis = block == 0 ? op.axis : op.axis == 3 ? 1 : op.axis + 1;
  const Shape shape = BlockedShape(builder.shape(node.outputs[0]), block);
  const int64_t outer = ElementCount(Shape(shape.begin(), shape.begin() + axis));
  const ComputeDtype type = program.stored_dtype(node);
  std::vector<TensorId> tensors;
  std::vector<int64_t> runs;  // by input: elements that are contiguous in the output
  for (const ValueId input : node.inputs) {
    tensors.push_back(InBlocks(input, block, type, program));
    runs.push_back(ElementCount(BlockedShape(builder.shape(input), block)) / outer);
  }
  tensors.push_back(OutInBlocks(node.outputs[0], block, type, program));
  const int64_t row = ElementCount(shape) / outer;
  WithElement(type, [&]<typename Element>(Element) {
    AddLoopStep(
        ElementCount(shape), kElementGrain, std::move(tensors),
        [runs, row](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          int64_t outer = begin / row, offset = begin % row;
          size_t input = 0;
          while (offset >= runs[input]) offset -= runs[input++];
          for (Element* y = data.At<Element>(runs.size()) + begin; begin < end; offset = 0) {
            const int64_t count = std::min(end - begin, runs[input] - offset);
            y = std::copy_n(data.At<Element>(input) + outer * runs[input] + offset, count, y);
            begin += count;
            if (++input < runs.size()) continue;
            input = 0;
            ++outer;
          }
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cpu
