#include "tests/worker/compute/double_interpreter.h"

#include <algorithm>
#include <numeric>

#include "worker/compute/reference/kernels.h"

namespace shoal {

double DoubleInterpreter::Run() {
  for (const Node& node : training_.graph.nodes()) {
    reference::Arguments arguments = {.op = *node.op, .dropout = true, .job_seed = 1, .step = 2};
    for (const ValueId input : node.inputs) {
      arguments.inputs.push_back({values_[input].data(), ConcreteShape(input)});
    }
    for (const ValueId output : node.outputs) {
      const Shape shape = ConcreteShape(output);
      values_[output].assign(ElementCount(shape), 0);
      arguments.outputs.push_back({values_[output].data(), shape});
    }
    reference::Kernels().at(node.op->type())(arguments);
  }
  const std::vector<double>& losses = values_[training_.loss_per_example];
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

Shape DoubleInterpreter::ConcreteShape(ValueId value) const {
  Shape shape = training_.graph.value(value).shape;
  std::replace(shape.begin(), shape.end(), kBatch, examples_);
  return shape;
}

}  // namespace shoal
