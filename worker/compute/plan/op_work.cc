#include "worker/compute/plan/op_work.h"

#include "common/model/ops/conv2d.h"
#include "common/model/ops/dense.h"
#include "common/model/ops/depthwise_conv2d.h"

namespace shoal {
namespace {

// Multiply-adds of a node. A convolution multiplies each element that its kernel moves over (its
// output, or the gradient of it) by the elements of one filter: all of `kernel` except its last
// axis.
int64_t MultiplyAdds(const Node& node, const Plan& plan) {
  const Op* const op = node.op.get();
  const auto count = [&](ValueId value) { return ElementCount(plan.shape(value)); };
  const auto of_one_filter = [](const Shape& kernel) {
    return ElementCount(Shape(kernel.begin(), kernel.end() - 1));
  };
  const auto of_one_channel = [](const Shape& kernel) { return kernel[0] * kernel[1]; };
  if (dynamic_cast<const Conv2DOp*>(op) != nullptr || dynamic_cast<const DenseOp*>(op) != nullptr)
    return count(node.outputs[0]) * of_one_filter(plan.shape(node.inputs[1]));
  if (dynamic_cast<const Conv2DBackwardDataOp*>(op) != nullptr ||
      dynamic_cast<const DenseBackwardDataOp*>(op) != nullptr)
    return count(node.inputs[0]) * of_one_filter(plan.shape(node.inputs[1]));
  if (dynamic_cast<const Conv2DBackwardWeightsOp*>(op) != nullptr ||
      dynamic_cast<const DenseBackwardWeightsOp*>(op) != nullptr)
    return count(node.inputs[1]) * of_one_filter(plan.shape(node.outputs[0]));
  if (dynamic_cast<const DepthwiseConv2DOp*>(op) != nullptr)
    return count(node.outputs[0]) * of_one_channel(plan.shape(node.inputs[1]));
  if (dynamic_cast<const DepthwiseConv2DBackwardDataOp*>(op) != nullptr)
    return count(node.inputs[0]) * of_one_channel(plan.shape(node.inputs[1]));
  if (dynamic_cast<const DepthwiseConv2DBackwardWeightsOp*>(op) != nullptr)
    return count(node.inputs[1]) * of_one_channel(plan.shape(node.outputs[0]));
  return 0;
}

}  // namespace

std::map<std::string, OpWork> WorkByOp(const Plan& plan) {
  std::map<std::string, OpWork> work;
  for (const Node& node : plan.nodes()) {
    OpWork& of_op = work[node.op->type()];
    of_op.multiply_adds += MultiplyAdds(node, plan);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.op->Reads(static_cast<int>(i), plan.in_training_mode())) continue;
      of_op.values += ElementCount(plan.shape(node.inputs[i]));
    }
    for (const ValueId output : node.outputs) of_op.values += ElementCount(plan.shape(output));
  }
  return work;
}

}  // namespace shoal
