#pragma once

#include <cstdint>

#include "worker/compute/cuda/kernels/strided.h"
#include "worker/compute/cuda/program/cuda_program_builder.h"

namespace shoal::cuda {

// Copies the elements that `from_axes` visits, from index `from_first` on, to the places that
// `to_axes` visits. Both tensors have one type.
struct Move {
  ComputeDtype type;
  TensorId from, to;
  int64_t from_first = 0, to_first = 0;
  StridedAxes from_axes, to_axes;
  int64_t count = 0;
};

// Appends the step that makes `move` for the node.
void AddMove(const Node& node, const Move& move, CudaProgramBuilder& program);

// A move from a node's first input to its output.
Move MoveOf(const Node& node, CudaProgramBuilder& program);

}  // namespace shoal::cuda
