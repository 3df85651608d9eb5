#include "worker/compute/cpu/cpu_program.h"

namespace shoal::cpu {

absl::Status ModeSwitch(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  builder.Bind(node.outputs[0], builder.tensor(node.inputs[builder.training() ? 0 : 1]));
  return absl::OkStatus();
}

}  // namespace shoal::cpu
