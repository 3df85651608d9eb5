#include "worker/compute/cpu/cpu_program_builder.h"

namespace shoal::cpu {

absl::Status ModeSwitch(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const ValueId x = node.inputs[builder.in_training_mode() ? 0 : 1], y = node.outputs[0];
  const TensorId tensor = builder.tensor(x);
  const ComputeDtype type = program.shared_dtype(x, y);
  builder.Bind(y, builder.tensor_info(tensor).type == type ? tensor : program.RowMajor(x, type));
  return absl::OkStatus();
}

}  // namespace shoal::cpu
