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

// Which part of a training graph is computed.
enum class PlanMode {
  kTrain,            // everything
  kEvaluate,         // the model and the loss, as in inference
  kPredict,          // the model, as in inference
  kPredictTraining,  // the model, as in training
};

// What a plan is made for.
struct PlanUse {
  bool in_parts = false;   // the examples may be a part of a batch
  bool size_only = false;  // its memory is asked for, and it never runs
};

// What is computed of a training graph in one mode with batches of one size: what is so on every
// device, before a backend chooses kernels. Constant once made; outlived by the graph.
class Plan {
 public:
  // `metrics` are those whose sums are wanted beside the loss's.
  Plan(const TrainingGraph& training, PlanMode mode, int64_t examples,
       std::vector<std::shared_ptr<const Metric>> metrics = {}, PlanUse use = {});

  const TrainingGraph& training_graph() const { return *training_; }
  const Graph& graph() const { return training_->graph; }
  // Where each variable lies in the caller's parameters and gradients.
  const ModelLayout& layout() const { return layout_; }
  PlanMode mode() const { return mode_; }
  int64_t examples() const { return examples_; }
  const std::vector<std::shared_ptr<const Metric>>& metrics() const { return metrics_; }

  // Whether gradients are computed.
  bool trains() const { return mode_ == PlanMode::kTrain; }
  // Whether gradients of several runs may be added up to those of a batch.
  bool adds_up_parts() const { return trains() && use_.in_parts; }
  // Whether a device may measure how it is computed the fastest: what evaluates or predicts has the
  // same bits whenever it is computed, and what never runs is not worth the time.
  bool may_measure() const { return trains() && !use_.size_only; }
  // Whether the loss is computed, and what else is summed over the batch.
  bool has_loss() const { return mode_ == PlanMode::kTrain || mode_ == PlanMode::kEvaluate; }
  // Whether layers that differ do as in training (dropout, batch normalization).
  bool training() const { return mode_ == PlanMode::kTrain || mode_ == PlanMode::kPredictTraining; }

  // Indices of the nodes to compute, in order: those that what the caller reads is made of.
  const std::vector<int>& nodes() const { return nodes_; }
  // Among nodes(), those that read `value`.
  const std::vector<int>& consumers(ValueId value) const { return consumers_[value]; }
  // Whether the caller reads `value` when all has run (or it is a variable's gradient).
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
