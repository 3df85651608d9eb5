#pragma once

#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "common/model/loss.h"

namespace shoal {

// A graph with its loss and its static reverse pass.
struct TrainingGraph {
  Graph graph;                          // forward nodes, those of the loss, gradient nodes
  int forward_nodes = 0;                // nodes before this index are the model itself
  int loss_nodes_end = 0;               // from there up to this index: the loss
  ValueId target = kNoValue;            // input: the labels
  ValueId weights = kNoValue;           // input: what each example counts, {kBatch}; none: all 1
  ValueId loss_scale = kNoValue;        // input: what gradients are multiples of, {1}; none: of 1
  ValueId prediction = kNoValue;        // the model's output, as the user sees it
  ValueId loss_per_example = kNoValue;  // shape {kBatch}
  // By variable: what a step pushes for it, its gradient or the sample of a moving average.
  // kNoValue where it is frozen, or where the loss does not depend on it: its gradient is zero.
  std::vector<ValueId> pushed_values;
  // Inputs of whose values is known that they are whole numbers from 0 to 255.
  std::set<ValueId> byte_inputs;
};

struct TrainingGraphOptions {
  // The loss of an example is multiplied by its weight; the mean is still over the number of
  // examples, as Keras's sum_over_batch_size.
  bool weighted = false;
  // All gradients are those of the loss times TrainingGraph::loss_scale, so that small ones are not
  // lost in float16 on the way; what is pushed of moving averages, and the loss itself, are not.
  bool scales_loss = false;
};

// Adds `loss` of the graph's one output and the penalties of regularizers (variables' and
// activities', also in evaluation) to a copy of `model`,
// then the static reverse pass, nodes in an order in which the gradients of the last layers come
// first. Values used by several nodes get the sum of their gradients.
absl::StatusOr<TrainingGraph> BuildTrainingGraph(const Graph& model, const Loss& loss,
                                                 const TrainingGraphOptions& options = {});

}  // namespace shoal
