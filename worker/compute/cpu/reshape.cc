#include "worker/compute/cpu/cpu_program.h"

namespace shoal::cpu {

absl::Status Reshape(const Node& node, CpuProgram& program) {
  program.builder().Bind(node.outputs[0], program.RowMajor(node.inputs[0]));
  return absl::OkStatus();
}

}  // namespace shoal::cpu
