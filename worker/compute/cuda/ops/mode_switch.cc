#include "worker/compute/cuda/program/cuda_program_builder.h"

namespace shoal::cuda {

absl::Status ModeSwitch(const Node& node, CudaProgramBuilder& program) {
  const ValueId input = node.inputs[program.builder().in_training_mode() ? 0 : 1];
  program.Bind(node.outputs[0], input);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
