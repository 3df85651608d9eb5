#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/shape.h"
#include "common/model/compute_dtype.h"
#include "common/model/graph.h"
#include "common/model/model_layout.h"
#include "common/model/training/training_graph.h"
#include "common/training_metric/metric.h"

namespace shoal {

// The part of a training graph to compute.
enum class PlanMode {
  kTrain,            // everything
  kEvaluate,         // the model and the loss, as in inference
  kPredict,          // the model, as in inference
  kPredictTraining,  // the model, as in training
};

// The purpose of a plan.
struct PlanUse {
  bool in_parts = false;   // the examples may be a part of a batch
  bool size_only = false;  // only its memory size is needed; it never runs
};

// The device-independent part of compilation: the nodes to compute in one mode with batches of one
// size. It begins with nodes of a training graph; passes then put nodes in the place of others
// (passes/passes.h). A backend gets the final nodes and chooses a kernel for each. The training
// graph must outlive it. Thread-safe when constant.
class Plan {
 public:
  // `metrics` are those to sum up in addition to the loss.
  Plan(const TrainingGraph& training, PlanMode mode, int64_t examples,
       std::vector<std::shared_ptr<const Metric>> metrics = {}, PlanUse use = {});

  const TrainingGraph& training_graph() const { return *training_; }
  // The graph whose inputs, variables and values are those of the plan. Its nodes are not.
  const Graph& graph() const { return training_->graph; }
  // The offset of each variable in the caller's parameters and gradients.
  const ModelLayout& layout() const { return layout_; }
  PlanMode mode() const { return mode_; }
  int64_t examples() const { return examples_; }
  const std::vector<std::shared_ptr<const Metric>>& metrics() const { return metrics_; }

  // Whether the plan computes gradients.
  bool computes_gradients() const { return mode_ == PlanMode::kTrain; }
  // Whether the gradients of several runs may be added up to those of a batch.
  bool sums_parts() const { return computes_gradients() && use_.in_parts; }
  // Whether a device may measure which algorithms are fastest. Evaluation and prediction must not,
  // because they must give the same bits every time. A plan that never runs is not worth the time.
  bool may_measure() const { return computes_gradients() && !use_.size_only; }
  // Whether the plan computes the loss and the other sums over the batch.
  bool has_loss() const { return mode_ == PlanMode::kTrain || mode_ == PlanMode::kEvaluate; }
  // Whether layers with two modes (dropout, batch normalization) use the training mode.
  bool in_training_mode() const {
    return mode_ == PlanMode::kTrain || mode_ == PlanMode::kPredictTraining;
  }

  // The nodes to compute, in order: all that the values for the caller depend on.
  const std::vector<Node>& nodes() const { return nodes_; }
  // The indices of the nodes that read `value`, in order. A node is named once for each input.
  const std::vector<int>& consumers(ValueId value) const { return consumers_[value]; }
  // The index of the node that computes `value`; -1: none does.
  int producer(ValueId value) const { return producers_[value]; }
  // The index of the node with this id (Node::id); -1: there is none. O(nodes).
  int FindNode(int id) const;
  // Whether the caller reads `value` after the run, or it is a variable's gradient.
  bool wanted_outside(ValueId value) const;
  // Shape of a value with the batch size in place of kBatch.
  Shape shape(ValueId value) const;
  // The type in which the node that computes `value` stores it. A kernel may store float32 instead.
  // float32 for all values until passes have run (passes/element_types.h).
  ComputeDtype element_type(ValueId value) const { return element_types_[value]; }

  // Replaces the nodes. They compute the same values for the caller, in an order in which each
  // reads what is computed before it.
  void SetNodes(std::vector<Node> nodes);
  // Sets the element types, by value.
  void SetElementTypes(std::vector<ComputeDtype> types) { element_types_ = std::move(types); }

 private:
  std::vector<Node> SelectNodes() const;

  const TrainingGraph* training_;
  ModelLayout layout_;
  PlanMode mode_;
  int64_t examples_;
  std::vector<std::shared_ptr<const Metric>> metrics_;
  PlanUse use_;
  std::vector<Node> nodes_;
  std::vector<std::vector<int>> consumers_;  // by value
  std::vector<int> producers_;               // by value
  std::vector<ComputeDtype> element_types_;  // by value
};

}  // namespace shoal
