#pragma once

#include <vector>

#include "common/model/graph.h"
#include "common/model/training_graph.h"

namespace shoal {

// Computes a training graph in double by the reference kernels, a value at a time.
class DoubleInterpreter {
 public:
  // `training` must outlive this.
  DoubleInterpreter(const TrainingGraph& training, int64_t examples)
      : training_(training), examples_(examples), values_(training.graph.values().size()) {}

  void SetInput(int input, std::vector<double> data) {
    values_[training_.graph.inputs()[input]] = std::move(data);
  }
  std::vector<double>& variable(int variable) {
    return values_[training_.graph.variable_values()[variable]];
  }

  // Computes all nodes and returns the mean of the loss over the examples.
  double Run();
  // After Run().
  const std::vector<double>& gradient(int variable) const {
    return values_[training_.variable_gradients[variable]];
  }

 private:
  Shape ConcreteShape(ValueId value) const;

  const TrainingGraph& training_;
  const int64_t examples_;
  std::vector<std::vector<double>> values_;
};

}  // namespace shoal
