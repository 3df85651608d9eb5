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
#include "worker/compute/program.h"

namespace shoal {

// The kernels that a ProgramBuilder adds of itself.
class MoveKernels {
 public:
  virtual ~MoveKernels() = default;
  virtual std::unique_ptr<Kernel> Copy(int64_t size_bytes) const = 0;  // (from, to)
  virtual std::unique_ptr<Kernel> Zero(int64_t size_bytes) const = 0;  // (to)
};

// Collects the steps of a program while a backend goes through the nodes of a graph, then plans
// memory. Every value that a later node reads must be bound to a tensor: by Output (a new one) or
// Bind (one that is there). Variables, inputs and what is pushed for variables
// (below: their gradients) are bound from the start, to the caller's memory. Not thread-safe.
class ProgramBuilder {
 public:
  // Both outlive this.
  ProgramBuilder(const Plan& plan, const MoveKernels& moves);

  const Plan& plan() const { return plan_; }
  // The plan's, which kernels ask for most.
  const Graph& graph() const { return plan_.graph(); }
  Shape shape(ValueId value) const { return plan_.shape(value); }
  bool training() const { return plan_.training(); }

  bool bound(ValueId value) const { return bindings_[value] >= 0; }
  // Where `value` lies. It must be bound.
  TensorId tensor(ValueId value) const;
  const Tensor& tensor_info(TensorId id) const { return tensors_[id]; }

  // A row-major tensor for a value that is about to be computed: the caller's for the gradient of a
  // variable, else a new one in the arena.
  TensorId Output(ValueId value);
  // Makes `value` lie in an existing tensor. The gradient of a variable is copied to its own place
  // instead (the tensor must be row-major then).
  void Bind(ValueId value, TensorId tensor);
  // A new tensor in the arena.
  TensorId AddTensor(int64_t size_bytes, std::shared_ptr<const TensorLayout> layout = nullptr);

  // Says what the steps that are added from now on compute; returns what was said before.
  std::string BeginWork(std::string work) { return std::exchange(work_, std::move(work)); }
  // Appends a kernel and the tensors it touches, in the order in which it expects them.
  void AddStep(std::unique_ptr<Kernel> kernel, std::vector<TensorId> tensors);

  // Says that `sums` will hold what the caller otherwise adds up on the host from the losses and
  // the prediction: in double, the sum of the loss, then those of plan().metrics(). For a device,
  // from which these few bytes are read instead. The tensor has the size of these numbers.
  void SetSums(TensorId sums);

  // Says that `check` will hold a GradientCheck, by which a device's gradients leave or do not, of
  // a training graph with a loss scale: what the steps that are added last leave of all gradients.
  void SetGradientCheck(TensorId check);
  // Where the gradients of variables are complete when the nodes' steps have run, by variable; -1:
  // it has none. No node may follow.
  const std::vector<TensorId>& CompleteGradients();

  // Plans memory and ends the building.
  Program Build() &&;

 private:
  // Whether `value` is what a step pushes for a variable.
  bool is_pushed(ValueId value) const;
  // The offsets in the arena; returns how large it must be.
  int64_t PlaceArenaTensors(std::vector<Lifetime> lifetimes);
  // Which steps are the first to read a variable, and the last to touch it.
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
