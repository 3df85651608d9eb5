#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/shape.h"
#include "common/model/graph.h"
#include "common/model/model_layout.h"
#include "common/model/training_graph.h"
#include "worker/compute/program.h"

namespace shoal {

// Which part of a training graph a program computes.
enum class ProgramMode {
  kTrain,            // everything
  kEvaluate,         // the model and the loss, as in inference
  kPredict,          // the model, as in inference
  kPredictTraining,  // the model, as in training
};

// Collects the steps of a program while a backend goes through the nodes of a graph, then plans
// memory. Every value that a later node reads must be bound to a tensor: by Output (a new one) or
// Bind (one that is there). Variables, inputs and what is pushed for variables
// (below: their gradients) are bound from the start, to the caller's memory. Not thread-safe;
// outlived by the graph.
class ProgramBuilder {
 public:
  ProgramBuilder(const TrainingGraph& graph, const ModelLayout& layout, ProgramMode mode,
                 int64_t examples);

  const Graph& graph() const { return training_.graph; }
  ValueId prediction() const { return training_.prediction; }
  // Indices of the nodes to compute, in order: those that what the caller reads is made of.
  const std::vector<int>& nodes() const { return nodes_; }
  // Among nodes(), those that read `value`.
  const std::vector<int>& consumers(ValueId value) const { return consumers_[value]; }
  // Whether the caller reads `value` when the program has run (or it is a variable's gradient).
  bool wanted_outside(ValueId value) const;
  // Whether layers that differ do as in training (dropout, batch normalization).
  bool training() const { return training_mode_; }
  // Shape of a value with the batch size in place of kBatch.
  Shape shape(ValueId value) const;

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

  // Plans memory and ends the building.
  Program Build() &&;

 private:
  void SelectNodes(ProgramMode mode);
  void PlaceArenaTensors(int64_t* arena_size_bytes);
  void MarkVariablesDone();

  const TrainingGraph& training_;
  const int64_t examples_;
  const bool training_mode_;
  const bool train_;
  std::vector<int> nodes_;
  std::vector<std::vector<int>> consumers_;  // by value
  std::vector<TensorId> bindings_;           // by value; -1: not computed yet
  std::vector<TensorId> parameters_;         // by variable
  std::vector<TensorId> gradients_;          // by variable; -1: none
  std::vector<Tensor> tensors_;
  std::vector<Program::Step> steps_;
  std::string work_;
};

}  // namespace shoal
