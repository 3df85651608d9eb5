#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/shape.h"
#include "common/model/graph.h"
#include "common/model/model_layout.h"
#include "common/model/training_graph.h"
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

// The device-independent part of compilation: the nodes of a training graph to compute in one mode
// with batches of one size. A backend chooses kernels afterwards. Constant once made; the graph
// must outlive it.
class Plan {
 public:
  // `metrics` are those to sum up in addition to the loss.
  Plan(const TrainingGraph& training, PlanMode mode, int64_t examples,
       std::vector<std::shared_ptr<const Metric>> metrics = {}, PlanUse use = {});

  const TrainingGraph& training_graph() const { return *training_; }
  const Graph& graph() const { return training_->graph; }
  // The offset of each variable in the caller's parameters and gradients.
  const ModelLayout& layout() const { return layout_; }
  PlanMode mode() const { return mode_; }
  int64_t examples() const { return examples_; }
  const std::vector<std::shared_ptr<const Metric>>& metrics() const { return metrics_; }

  // Whether the plan computes gradients.
  bool trains() const { return mode_ == PlanMode::kTrain; }
  // Whether the gradients of several runs may be added up to those of a batch.
  bool sums_parts() const { return trains() && use_.in_parts; }
  // Whether a device may measure which algorithms are fastest. Evaluation and prediction must not,
  // because they must give the same bits every time. A plan that never runs is not worth the time.
  bool may_measure() const { return trains() && !use_.size_only; }
  // Whether the plan computes the loss and the other sums over the batch.
  bool has_loss() const { return mode_ == PlanMode::kTrain || mode_ == PlanMode::kEvaluate; }
  // Whether layers with two modes (dropout, batch normalization) use the training mode.
  bool training() const { return mode_ == PlanMode::kTrain || mode_ == PlanMode::kPredictTraining; }

  // Indices of the nodes to compute, in order: all nodes that the values for the caller depend on.
  const std::vector<int>& nodes() const { return nodes_; }
  // The readers of `value` among nodes().
  const std::vector<int>& consumers(ValueId value) const { return consumers_[value]; }
  // Whether the caller reads `value` after the run, or it is a variable's gradient.
  bool wanted_outside(ValueId value) const;
  // Shape of a value with the batch size in place of kBatch.
  Shape shape(ValueId value) const;

 private:
  void SelectNodes();

  const TrainingGraph* training_;
  ModelLayout layout_;
  PlanMode mode_;
  int64_t examples_;
  std::vector<std::shared_ptr<const Metric>> metrics_;
  PlanUse use_;
  std::vector<int> nodes_;
  std::vector<std::vector<int>> consumers_;  // by value
};

}  // namespace shoal
