#include "worker/compute/cpu/operands.h"

namespace shoal::cpu {

Operands AlignOperands(const std::vector<ValueId>& inputs, ValueId output, bool zeros_stay,
                       CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const int64_t elements = ElementCount(builder.shape(output));
  Operands result;
  for (const ValueId input : inputs) {
    if (builder.is_pushed(output)) break;
    if (builder.tensor_info(builder.tensor(input)).layout == nullptr) continue;
    const dnnl::memory::desc desc = program.ImageDesc(input);
    const int64_t floats = desc.get_size() / sizeof(float);
    if (!zeros_stay && floats != elements) continue;
    for (const ValueId other : inputs) result.tensors.push_back(program.ImageIn(other, desc));
    result.tensors.push_back(program.ImageOutput(output, desc));
    result.desc = desc;
    result.count = floats;
    return result;
  }
  for (const ValueId input : inputs) result.tensors.push_back(program.RowMajor(input));
  result.tensors.push_back(builder.Output(output));
  result.desc =
      dnnl::memory::desc({elements}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::x);
  result.count = elements;
  return result;
}

}  // namespace shoal::cpu
