#include "worker/compute/cpu/image_blocks.h"

#include "worker/compute/cpu/channel_rows.h"

namespace shoal::cpu {

dnnl::memory::desc BlockedLayout(const Shape& image, int64_t block, ComputeDtype type) {
  return {{image[0], image[3], image[1], image[2]},
          CpuProgramBuilder::DataTypeOf(type),
          block == 16 ? dnnl::memory::format_tag::nChw16c : dnnl::memory::format_tag::nChw8c};
}

int64_t BlockFor(const std::vector<ValueId>& inputs, ValueId output, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  if (builder.shape(output).size() != 4 || builder.is_pushed(output)) return 0;
  for (const ValueId input : inputs) {
    const Shape shape = builder.shape(input);
    if (shape.size() != 4) continue;
    const int64_t block = ChannelRows::BlockOf(shape, program.ImageDesc(input));
    if (block > 0) return block;
  }
  return 0;
}

Shape BlockedShape(const Shape& image, int64_t block) {
  if (block == 0) return image;
  return {image[0], (image[3] + block - 1) / block, image[1], image[2], block};
}

TensorId InBlocks(ValueId value, int64_t block, ComputeDtype type, CpuProgramBuilder& program) {
  if (block == 0) return program.RowMajor(value, type);
  return program.ImageIn(value, BlockedLayout(program.builder().shape(value), block, type));
}

TensorId OutInBlocks(ValueId value, int64_t block, ComputeDtype type, CpuProgramBuilder& program) {
  if (block == 0) return program.builder().Output(value, type);
  return program.ImageOutput(value, BlockedLayout(program.builder().shape(value), block, type));
}

bool IsPerChannel(const Shape& shape, const Shape& image) {
  if (image.size() != 4 || shape.empty() || shape.size() > 4) return false;
  if (shape.back() != image[3] || image[3] == 1) return false;
  for (size_t axis = 2; axis <= shape.size(); ++axis) {
    const int64_t extent = shape[shape.size() - axis];
    const bool first = axis == 4;
    if (extent != 1 && !(first && extent == image[0])) return false;
  }
  return true;
}

}  // namespace shoal::cpu
