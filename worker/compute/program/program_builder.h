#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/shape.h"
#include "common/model/graph.h"
#include "worker/compute/plan/lifetimes.h"
#include "worker/compute/plan/plan.h"
#include "worker/compute/program/program.h"

namespace shoal {

// The kernels that a ProgramBuilder itself adds.
class MoveKernels {
 public:
  virtual ~MoveKernels() = default;
  virtual std::unique_ptr<Kernel> Copy(int64_t size_bytes) const = 0;  // (from, to)
  virtual std::unique_ptr<Kernel> Zero(int64_t size_bytes) const = 0;  // (to)
};

// Collects the steps of a program while a backend goes through the nodes of a graph, then plans
// memory. Every value that a later node reads must be bound to a tensor: by Output (a new one) or
// Bind (an existing one). Variables, inputs and the values pushed for variables (called gradients
// below) are bound to the caller's memory from the start. Not thread-safe.
class ProgramBuilder {
 public:
  // Both outlive this.
  ProgramBuilder(const Plan& plan, const MoveKernels& moves);

  const Plan& plan() const { return plan_; }
  // The plan's members that kernels use most.
  const Graph& graph() const { return plan_.graph(); }
  Shape shape(ValueId value) const { return plan_.shape(value); }
  bool in_training_mode() const { return plan_.in_training_mode(); }

  bool bound(ValueId value) const { return bindings_[value] >= 0; }
  // Whether a step pushes `value` for a variable: then its tensor must be row-major.
  bool is_pushed(ValueId value) const;
  // The tensor of `value`, which must be bound.
  TensorId tensor(ValueId value) const;
  const Tensor& tensor_info(TensorId id) const { return tensors_[id]; }

  // Returns a row-major tensor for a value that is about to be computed: the caller's for the
  // gradient of a variable, else a new one of this type in the arena. Requires float32 for a value
  // that the caller reads.
  TensorId Output(ValueId value, ComputeDtype type = ComputeDtype::kFloat32);
  // Binds `value` to an existing tensor. The gradient of a variable is copied to its own place
  // instead; the tensor must be row-major then. Requires float32 for a value that the caller reads.
  void Bind(ValueId value, TensorId tensor);
  // Adds a tensor to the arena.
  TensorId AddTensor(int64_t size_bytes, ComputeDtype type = ComputeDtype::kFloat32,
                     std::shared_ptr<const TensorLayout> layout = nullptr);

  // Sets the name of the work of all steps added from now on; returns the previous name.
  std::string BeginWork(std::string work) { return std::exchange(work_, std::move(work)); }
  // Appends a kernel with its tensors, in the order in which the kernel expects them.
  void AddStep(std::unique_ptr<Kernel> kernel, std::vector<TensorId> tensors);

  // Declares that `sums` will hold, as doubles, the sum of the loss and then the sums of
  // plan().metrics(). Otherwise the host adds these up from the losses and the prediction. A device
  // uses it, so that the host reads only these few bytes. The tensor has exactly the size of these
  // numbers.
  void SetSums(TensorId sums);

  // Declares that `check` will hold the GradientCheck of a training graph with a loss scale. The
  // last steps compute it from all gradients, and it decides whether a device sends the gradients
  // to the host.
  void SetGradientCheck(TensorId check);
  // Returns the tensors of the complete gradients, by variable; -1: none. Call it after the steps
  // of all nodes; no node may follow.
  const std::vector<TensorId>& CompleteGradients();

  // Plans memory and returns the program.
  Program Build() &&;

 private:
  // Sets the offsets in the arena; returns the size of the arena.
  int64_t PlaceArenaTensors(std::vector<Lifetime> lifetimes);
  // Records for each variable the first step that reads it and the last that touches it.
  void MarkVariables(const std::vector<Lifetime>& lifetimes);

  const Plan& plan_;
  const MoveKernels& moves_;
  std::vector<TensorId> bindings_;    // by value; -1: not computed yet
  std::vector<TensorId> parameters_;  // by variable
  std::vector<TensorId> gradients_;   // by variable; -1: none
  std::vector<Tensor> tensors_;
  std::vector<Program::Step> steps_;
  bool gradients_complete_ = false;
  TensorId sums_ = -1;
  TensorId check_ = -1;
  std::string work_;
};

}  // namespace shoal
