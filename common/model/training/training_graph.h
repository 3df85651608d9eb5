#pragma once

#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "common/model/loss.h"

namespace shoal {

// A graph with its loss and its static reverse pass.
struct TrainingGraph {
  Graph graph;                          // forward nodes, then loss nodes, then gradient nodes
  int forward_nodes = 0;                // nodes before this index are the model itself
  int loss_nodes_end = 0;               // nodes from there to before this index are the loss
  ValueId target = kNoValue;            // input: the labels
  ValueId weights = kNoValue;           // input: weight of each example, {kBatch}; none: all 1
  ValueId loss_scale = kNoValue;        // input: factor of all gradients, {1}; none: 1
  ValueId prediction = kNoValue;        // the model's output
  ValueId loss_per_example = kNoValue;  // shape {kBatch}
  // By variable: the value that a step pushes, its gradient or the sample of a moving average.
  // kNoValue if the variable is frozen, or if the loss does not depend on it: its gradient is zero.
  std::vector<ValueId> pushed_values;
  // Inputs whose values are known to be whole numbers from 0 to 255.
  std::set<ValueId> uint8_inputs;
};

struct TrainingGraphOptions {
  // Multiplies the loss of each example by its weight. The mean is still over the number of
  // examples, as in Keras's sum_over_batch_size.
  bool weighted = false;
  // Multiplies all gradients by TrainingGraph::loss_scale. This keeps small gradients from
  // vanishing in float16. The samples of moving averages and the loss itself are not scaled.
  bool scales_loss = false;
};

// Copies `model` and adds the loss of its one output, the penalties of regularizers and the static
// reverse pass. Penalties on variables and activities count in evaluation too. Gradient nodes are
// in an order in which the last layers' gradients come first. A value that several nodes use gets
// the sum of their gradients.
absl::StatusOr<TrainingGraph> BuildTrainingGraph(const Graph& model, const Loss& loss,
                                                 const TrainingGraphOptions& options = {});

}  // namespace shoal
