#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/model/compute_dtype.h"
#include "worker/compute/program/run_context.h"

namespace shoal {

// The layout of a tensor that is not row-major. Only the backend that made it can read it.
class TensorLayout {
 public:
  virtual ~TensorLayout() = default;
};

// Index of a tensor in its program.
using TensorId = int;

// A piece of memory that steps read and write. It may hold several values of the graph (a reshape).
struct Tensor {
  enum class Place {
    kArena,      // in the program's arena, shared with tensors that live at other times
    kInput,      // the caller's batch; `index` is the graph's input
    kParameter,  // the caller's parameters; `index` is the variable
    kGradient,   // the caller's gradients; `index` is the variable
  };
  Place place = Place::kArena;
  int index = -1;
  int64_t size_bytes = 0;
  ComputeDtype type = ComputeDtype::kFloat32;            // of the elements
  std::shared_ptr<const TensorLayout> layout = nullptr;  // null: row-major
  bool kept = false;                                     // read by the caller after the last step
  int64_t offset = 0;  // bytes, within the arena, parameters or gradients
};

// One computation with everything fixed except the addresses: shapes, layouts, attributes.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Computes, or has its device compute. `tensors` are the addresses of the kernel's tensors, in
  // the order of AddStep. They and `context` lie in the memory that the kernel computes in.
  virtual absl::Status Run(const RunContext* context, std::span<void* const> tensors) = 0;
};

// Kernels in the order in which they run, for one batch size, with a place for every tensor.
// Made by ProgramBuilder. Not thread-safe: kernels keep state between their runs.
class Program {
 public:
  struct Step {
    std::unique_ptr<Kernel> kernel;
    std::vector<TensorId> tensors;
    std::vector<int> variables_read;  // variables that no earlier step touches
    std::vector<int> variables_done;  // variables whose value and gradient no later step touches
    std::string work;                 // an op's type, or "Reorder"
  };
  // The tensors that the caller reads, row-major. -1: not computed.
  struct Results {
    TensorId prediction = -1;
    TensorId losses = -1;  // one per example
    TensorId sums = -1;    // ProgramBuilder::SetSums
    TensorId check = -1;   // ProgramBuilder::SetGradientCheck
  };

  Program(std::vector<Tensor> tensors, std::vector<Step> steps, const Results& results,
          int64_t arena_size_bytes)
      : tensors_(std::move(tensors)),
        steps_(std::move(steps)),
        results_(results),
        arena_size_bytes_(arena_size_bytes) {}

  const Results& results() const { return results_; }
  int64_t arena_size_bytes() const { return arena_size_bytes_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<Step> steps_;
  Results results_;
  int64_t arena_size_bytes_;
};

}  // namespace shoal
