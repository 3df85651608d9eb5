#include "worker/compute/cuda/program/cuda_program_builder.h"

namespace shoal::cuda {

absl::Status Reshape(const Node& node, CudaProgramBuilder& program) {
  program.Bind(node.outputs[0], node.inputs[0]);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
