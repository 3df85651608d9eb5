#include "tests/worker/compute/double_interpreter.h"

#include <algorithm>
#include <numeric>

#include "worker/compute/reference/kernels.h"

namespace shoal {

double DoubleInterpreter::Loss() {
  const std::vector<Node>& nodes = training_.graph.nodes();
  int end = training_.forward_nodes;
  while (nodes[end].outputs[0] != training_.loss_per_example) ++end;
  Run(end + 1, true);
  const std::vector<double>& losses = value(training_.loss_per_example);
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

void DoubleInterpreter::Run(int end, bool training) {
  const Graph& graph = training_.graph;
  for (int i = 0; i < end; ++i) {
    const Node& node = graph.nodes()[i];
    reference::Arguments arguments = {
        .op = *node.op, .training = training, .context = {.job_seed = kJobSeed, .step = kStep}};
    for (const ValueId input : node.inputs) {
      arguments.inputs.push_back({values_[input].data(), graph.value(input).shape});
    }
    for (const ValueId output : node.outputs) {
      values_[output].assign(ElementCount(graph.value(output).shape), 0);
      arguments.outputs.push_back({values_[output].data(), graph.value(output).shape});
    }
    reference::Kernels().at(node.op->type())(arguments);
  }
}

}  // namespace shoal
