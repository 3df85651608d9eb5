#include "worker/job/augmented_pictures.h"

#include <algorithm>
#include <memory>

#include "common/base/status_macros.h"
#include "common/model/ops/mode_switch.h"
#include "common/model/training/training_graph.h"
#include "worker/compute/registry/backends.h"

namespace shoal {
namespace {

// Returns the nodes of a model that depend only on the first input, and on no variable. The output
// is that of the last such node with a different training mode; the input if there is none.
absl::StatusOr<Graph> AugmentationOf(const Graph& model) {
  Graph graph;
  std::vector<ValueId> copies(model.values().size(), kNoValue);  // by value of the model
  const Value& input = model.value(model.inputs()[0]);
  ValueId output = copies[model.inputs()[0]] =
      graph.AddInput(input.name, input.shape, input.whole_numbers);
  for (const Node& node : model.nodes()) {
    std::vector<ValueId> inputs;
    for (const ValueId value : node.inputs) inputs.push_back(copies[value]);
    if (std::count(inputs.begin(), inputs.end(), kNoValue) > 0) continue;
    SHOAL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                           graph.AddNode(node.op, std::move(inputs), node.layer,
                                         /*value_name=*/"", node.compute_dtype));
    for (size_t i = 0; i < outputs.size(); ++i) copies[node.outputs[i]] = outputs[i];
    if (dynamic_cast<const ModeSwitchOp*>(node.op.get()) != nullptr) output = outputs[0];
  }
  graph.SetOutputs({output});
  return graph;
}

}  // namespace

absl::StatusOr<AugmentedPictures> AugmentPictures(const Graph& model,
                                                  std::span<const float> pictures, int64_t examples,
                                                  uint64_t seed, uint64_t step) {
  TrainingGraph training;
  SHOAL_ASSIGN_OR_RETURN(training.graph, AugmentationOf(model));
  training.forward_nodes = static_cast<int>(training.graph.nodes().size());
  training.prediction = training.graph.outputs()[0];
  const Plan plan(training, PlanMode::kPredictTraining, examples);
  const Shape shape = plan.shape(training.prediction);
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, CreateBackend("cpu"));
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<Executable> executable, backend->Compile(plan));
  AugmentedPictures augmented = {.values = std::vector<float>(ElementCount(shape)),
                                 .shape = Shape(shape.begin() + 1, shape.end())};
  SHOAL_RETURN_IF_ERROR(executable
                            ->Run({.job_seed = seed, .step = step},
                                  {.inputs = {pictures},
                                   .parameters = {},
                                   .gradients = {},
                                   .prediction = augmented.values},
                                  nullptr, nullptr)
                            .status());
  return augmented;
}

}  // namespace shoal
