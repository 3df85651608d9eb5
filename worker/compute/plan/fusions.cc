#include "worker/compute/plan/fusions.h"

#include <algorithm>
#include <string>

#include "common/model/ops/add.h"
#include "common/model/ops/batch_normalization.h"
#include "common/model/ops/bias.h"
#include "common/model/ops/pool2d.h"

namespace shoal {
namespace {

class FusionSearch {
 public:
  FusionSearch(const Plan& plan, const FusionChoice& choice)
      : plan_(plan), nodes_(plan.graph().nodes()), choice_(choice) {
    fusions_.relu.assign(nodes_.size(), -1);
    fusions_.residual_sum.assign(nodes_.size(), -1);
    fusions_.bias_gradient.assign(nodes_.size(), -1);
    fusions_.relu_gradient.assign(nodes_.size(), -1);
    fusions_.cut_off.assign(nodes_.size(), {});
    fusions_.residual_gradient.assign(nodes_.size(), -1);
    fusions_.gradient_sum.assign(nodes_.size(), -1);
    fusions_.zero_gradient.assign(nodes_.size(), -1);
    fusions_.absorbed.assign(nodes_.size(), false);
  }

  Fusions Run() && {
    for (const int index : plan_.nodes()) {
      const std::string type = nodes_[index].op->type();
      if (type == "Conv2D" || type == "DepthwiseConv2D" || type == "Dense" ||
          type == "BatchNormalization" || type == "Add") {
        Absorb(fusions_.relu, index, FindRelu(index));
        if (type == "BatchNormalization" && choice_.normalizations_take_sums)
          Absorb(fusions_.residual_sum, index, FindResidualSum(index));
      } else if (type == "Conv2DBackwardWeights" || type == "DepthwiseConv2DBackwardWeights") {
        Absorb(fusions_.bias_gradient, index, FindBiasGradient(index));
      } else if (type == "Pool2DBackward" && choice_.poolings_take_gradients) {
        Absorb(fusions_.relu_gradient, index, FindReluGradient(index));
      } else if (type == "BatchNormalizationBackward") {
        fusions_.cut_off[index] = FindCutOff(index);
        if (const int relu = fusions_.cut_off[index].relu_gradient; relu >= 0) {
          fusions_.absorbed[relu] = true;
        } else if (choice_.normalizations_take_sums) {
          Absorb(fusions_.residual_gradient, index, FindResidualGradient(index));
          Absorb(fusions_.gradient_sum, index, FindGradientSum(index));
        }
        if (choice_.normalizations_take_zeros)
          Absorb(fusions_.zero_gradient, index, FindZeroGradient(index));
      }
    }
    return std::move(fusions_);
  }

 private:
  void Absorb(std::vector<int>& by_node, int index, int absorbed) {
    if (absorbed < 0) return;
    by_node[index] = absorbed;
    fusions_.absorbed[absorbed] = true;
  }

  template <typename OpType>
  const OpType* OpAt(int index) const {
    return dynamic_cast<const OpType*>(nodes_[index].op.get());
  }

  // The ReLU that is the only reader of the output, apart from its own gradient, which can use the
  // result instead.
  int FindRelu(int index) const {
    const ValueId output = nodes_[index].outputs[0];
    if (plan_.wanted_outside(output)) return -1;
    int relu = -1;
    for (const int consumer : plan_.consumers(output)) {
      const auto* gradient = OpAt<ActivationBackwardOp>(consumer);
      if (gradient != nullptr && IsPlainRelu(gradient->attributes) &&
          nodes_[consumer].inputs[0] == output && nodes_[consumer].inputs[1] != output &&
          nodes_[consumer].inputs[2] != output) {
        continue;
      }
      const auto* activation = OpAt<ActivationOp>(consumer);
      if (relu >= 0 || activation == nullptr || !IsPlainRelu(activation->attributes)) return -1;
      relu = consumer;
    }
    return relu;
  }

  int FindResidualSum(int index) const {
    const ValueId output = nodes_[index].outputs[0];
    const std::vector<int>& consumers = plan_.consumers(output);
    if (consumers.size() != 1 || plan_.wanted_outside(output)) return -1;
    const Node& sum = nodes_[consumers[0]];
    if (OpAt<AddOp>(consumers[0]) == nullptr || sum.inputs.size() != 2) return -1;
    const ValueId other = sum.inputs[sum.inputs[0] == output ? 1 : 0];
    return NodeOf(other) < index ? consumers[0] : -1;
  }

  int FindZeroGradient(int index) const {
    if (OpAt<BatchNormalizationBackwardOp>(index)->frozen) return -1;
    for (const int consumer : plan_.consumers(nodes_[index].outputs[0])) {
      if (OpAt<BiasBackwardOp>(consumer) != nullptr) return consumer;
    }
    return -1;
  }

  int FindBiasGradient(int index) const {
    for (const int consumer : plan_.consumers(nodes_[index].inputs[1])) {
      const bool same_layer = nodes_[consumer].layer == nodes_[index].layer;
      if (same_layer && OpAt<BiasBackwardOp>(consumer) != nullptr && !fusions_.absorbed[consumer]) {
        return consumer;
      }
    }
    return -1;
  }

  int FindReluGradient(int index) const {
    const Node& pooling = nodes_[index];
    const std::vector<int>& consumers = plan_.consumers(pooling.outputs[0]);
    if (OpAt<Pool2DBackwardOp>(index)->kind != Pool2DOp::Kind::kMax || consumers.size() != 1 ||
        plan_.wanted_outside(pooling.outputs[0])) {
      return -1;
    }
    const auto* relu = OpAt<ActivationBackwardOp>(consumers[0]);
    const bool fits = relu != nullptr && IsPlainRelu(relu->attributes) &&
                      nodes_[consumers[0]].inputs[1] == pooling.inputs[0] &&
                      nodes_[consumers[0]].inputs[2] == pooling.outputs[0];
    return fits ? consumers[0] : -1;
  }

  // The node that computes `value`; -1: none.
  int NodeOf(ValueId value) const {
    for (const int index : plan_.nodes()) {
      const std::vector<ValueId>& outputs = nodes_[index].outputs;
      if (std::count(outputs.begin(), outputs.end(), value) > 0) return index;
    }
    return -1;
  }

  // Found if the gradient of the normalization's output comes from a ReLU that read that output,
  // and this node is its only reader.
  Fusions::CutOff FindCutOff(int index) const {
    const ValueId dy = nodes_[index].inputs[1];
    const Fusions::CutOff found = {.relu_gradient = NodeOf(dy)};
    // A pooling may have absorbed it.
    if (found.relu_gradient < 0 || fusions_.absorbed[found.relu_gradient] ||
        plan_.consumers(dy).size() != 1 || plan_.wanted_outside(dy)) {
      return {};
    }
    const auto* relu = OpAt<ActivationBackwardOp>(found.relu_gradient);
    if (relu == nullptr || !IsPlainRelu(relu->attributes)) return {};
    const int normalization = NodeOf(nodes_[found.relu_gradient].inputs[0]);
    if (normalization < 0 || OpAt<BatchNormalizationOp>(normalization) == nullptr ||
        nodes_[normalization].inputs[0] != nodes_[index].inputs[0] ||
        nodes_[normalization].layer != nodes_[index].layer) {
      return {};
    }
    return {.relu_gradient = found.relu_gradient, .normalization = normalization};
  }

  // For nodes without a FindCutOff: others also read the gradient, or the ReLU's input is more than
  // the normalization's output.
  int FindResidualGradient(int index) const {
    const int gradient = FindFirstRead(index, nodes_[index].inputs[1]);
    if (gradient < 0) return -1;
    const auto* relu = OpAt<ActivationBackwardOp>(gradient);
    return relu != nullptr && IsPlainRelu(relu->attributes) ? gradient : -1;
  }

  int FindGradientSum(int index) const {
    const int relu = fusions_.residual_gradient[index];
    const ValueId dy = relu >= 0 ? nodes_[relu].inputs[2] : nodes_[index].inputs[1];
    const int sum = FindFirstRead(relu >= 0 ? relu : index, dy);
    if (sum < 0 || OpAt<AddOp>(sum) == nullptr || nodes_[sum].inputs.size() != 2) return -1;
    // The input of a ReLU's gradient is not kept for other readers.
    return relu < 0 || plan_.consumers(dy).size() == 1 ? sum : -1;
  }

  // Returns the node that computes `value` if `reader` is its first reader and the caller does not
  // read it. -1: there is no such node, or another node absorbs it.
  int FindFirstRead(int reader, ValueId value) const {
    const int index = NodeOf(value);
    if (index < 0 || fusions_.absorbed[index] || plan_.wanted_outside(value)) return -1;
    const std::vector<int>& consumers = plan_.consumers(value);
    return *std::min_element(consumers.begin(), consumers.end()) == reader ? index : -1;
  }

  const Plan& plan_;
  const std::vector<Node>& nodes_;
  const FusionChoice choice_;
  Fusions fusions_;
};

}  // namespace

bool IsPlainRelu(const ActivationAttributes& attributes) {
  return attributes.kind == ActivationAttributes::Kind::kRelu && attributes.negative_slope == 0 &&
         attributes.threshold == 0 && attributes.max_value != 0;
}

Fusions FindFusions(const Plan& plan, const FusionChoice& choice) {
  return FusionSearch(plan, choice).Run();
}

}  // namespace shoal
