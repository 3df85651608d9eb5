#include "worker/compute/cpu/cpu_program.h"

namespace shoal::cpu {

absl::Status ModeSwitch(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const ValueId x = node.inputs[builder.training() ? 0 : 1], y = node.outputs[0];
  const TensorId tensor = builder.tensor(x);
  const ComputeDtype type = program.shared_dtype(x, y);
  builder.Bind(y, builder.tensor_info(tensor).type == type ? tensor : program.RowMajor(x, type));
  return absl::OkStatus();
}

}  // namespace shoal::cpu
