#include "worker/compute/cuda/cuda_program.h"

namespace shoal::cuda {

absl::Status ModeSwitch(const Node& node, CudaProgram& program) {
  const ValueId input = node.inputs[program.builder().training() ? 0 : 1];
  program.Bind(node.outputs[0], input);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
