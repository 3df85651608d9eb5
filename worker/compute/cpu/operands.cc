#include "worker/compute/cpu/operands.h"

namespace shoal::cpu {

Operands AlignOperands(const std::vector<ValueId>& inputs, ValueId output, bool zeros_stay,
                       ComputeDtype type, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const int64_t elements = ElementCount(builder.shape(output));
  Operands result;
  for (const ValueId input : inputs) {
    if (builder.is_pushed(output)) break;
    if (builder.tensor_info(builder.tensor(input)).layout == nullptr) continue;
    const dnnl::memory::desc desc = CpuProgramBuilder::WithType(program.ImageDesc(input), type);
    const int64_t padded = static_cast<int64_t>(desc.get_size()) / SizeOf(type);
    if (!zeros_stay && padded != elements) continue;
    for (const ValueId other : inputs) result.tensors.push_back(program.ImageIn(other, desc));
    result.tensors.push_back(program.ImageOutput(output, desc));
    result.desc = desc;
    result.count = padded;
    return result;
  }
  for (const ValueId input : inputs) result.tensors.push_back(program.RowMajor(input, type));
  result.tensors.push_back(builder.Output(output, type));
  result.desc = dnnl::memory::desc({elements}, CpuProgramBuilder::DataTypeOf(type),
                                   dnnl::memory::format_tag::x);
  result.count = elements;
  return result;
}

}  // namespace shoal::cpu
