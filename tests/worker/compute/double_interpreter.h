#pragma once

#include <vector>

#include "common/model/training/training_graph.h"

namespace shoal {

// Computes a training graph in double with the reference kernels, value by value, with RunContext
// {kJobSeed, kStep}.
class DoubleInterpreter {
 public:
  static constexpr uint64_t kJobSeed = 1;
  static constexpr uint64_t kStep = 2;

  // `training` must outlive this. Its shapes have no batch extent.
  explicit DoubleInterpreter(const TrainingGraph& training)
      : training_(training), values_(training.graph.values().size()) {}

  std::vector<double>& input(int input) { return values_[training_.graph.inputs()[input]]; }
  std::vector<double>& variable(int variable) {
    return values_[training_.graph.variable_values()[variable]];
  }

  // Computes all nodes, as in training.
  void Train() { Run(static_cast<int>(training_.graph.nodes().size()), true); }
  // Computes the model alone, as in inference or in training.
  void Predict(bool training) { Run(training_.forward_nodes, training); }
  // Computes the model and its loss, as in training, and returns the mean of the loss over the
  // examples.
  double Loss();

  // Returns the value of the last run.
  const std::vector<double>& value(ValueId value) const { return values_[value]; }

 private:
  // Runs the first `end` nodes.
  void Run(int end, bool training);

  const TrainingGraph& training_;
  std::vector<std::vector<double>> values_;
};

}  // namespace shoal
