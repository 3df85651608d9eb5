#include "worker/compute/cpu/cpu_program_builder.h"

namespace shoal::cpu {

absl::Status Reshape(const Node& node, CpuProgramBuilder& program) {
  const ValueId x = node.inputs[0], y = node.outputs[0];
  program.builder().Bind(y, program.RowMajor(x, program.shared_dtype(x, y)));
  return absl::OkStatus();
}

}  // namespace shoal::cpu
