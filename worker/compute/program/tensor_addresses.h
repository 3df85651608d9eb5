#pragma once

#include <vector>

#include "worker/compute/program/program.h"

namespace shoal {

// The beginnings of the memory that holds a program's tensors in one run.
struct ProgramMemory {
  char* arena;
  char* parameters;
  char* gradients;
};

// Sets `addresses`, by tensor; `input_at(i)` returns the address of input i of the graph.
template <typename InputAt>
void FindAddresses(const std::vector<Tensor>& tensors, const ProgramMemory& memory,
                   InputAt input_at, std::vector<void*>& addresses) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    switch (tensor.place) {
      case Tensor::Place::kArena:
        addresses[i] = memory.arena + tensor.offset;
        break;
      case Tensor::Place::kInput:
        addresses[i] = input_at(tensor.index);
        break;
      case Tensor::Place::kParameter:
        addresses[i] = memory.parameters + tensor.offset;
        break;
      case Tensor::Place::kGradient:
        addresses[i] = memory.gradients + tensor.offset;
        break;
    }
  }
}

}  // namespace shoal
