#include "worker/compute/plan/passes/folded_padding.h"

#include <array>
#include <memory>
#include <vector>

#include "common/base/status_macros.h"
#include "common/model/ops/activation.h"
#include "common/model/ops/conv2d.h"
#include "common/model/ops/depthwise_conv2d.h"
#include "common/model/ops/pad.h"
#include "common/model/ops/pool2d.h"
#include "worker/compute/plan/passes/graph_copy.h"
#include "worker/compute/plan/plain_relu.h"

namespace shoal {
namespace {

// Whether a window can take over these zeros: they surround only the image, and no whole window
// lies in them.
bool CanFold(const Window& window, const Margins& margins) {
  if (window.padding != Padding::kValid || margins.before.size() != 3) return false;
  if (margins.before[2] != 0 || margins.after[2] != 0) return false;
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t reach = (window.size[axis] - 1) * window.dilation[axis] + 1;
    if (window.zeros_before[axis] + margins.before[axis] >= reach) return false;
    if (window.zeros_after[axis] + margins.after[axis] >= reach) return false;
  }
  return true;
}

// Whether `node` computes with the same values as `pad`. A padding layer of a narrower dtype rounds
// them first.
bool ReadsUnrounded(const Node& node, const Node& pad) {
  return pad.compute_dtype == ComputeDtype::kFloat32 || pad.compute_dtype == node.compute_dtype;
}

// Returns the op with the zeros in its window; null if it is not an OpType or cannot take them.
template <typename OpType>
std::shared_ptr<const Op> WithZeros(const Op& op, const Margins& margins) {
  const auto* windowed = dynamic_cast<const OpType*>(&op);
  if (windowed == nullptr || !CanFold(windowed->window, margins)) return nullptr;
  auto folded = std::make_shared<OpType>(*windowed);
  for (int axis = 0; axis < 2; ++axis) {
    folded->window.zeros_before[axis] += margins.before[axis];
    folded->window.zeros_after[axis] += margins.after[axis];
  }
  return folded;
}

bool IsRelu(const Node* node) {
  const auto* activation =
      node == nullptr ? nullptr : dynamic_cast<const ActivationOp*>(node->op.get());
  return activation != nullptr && IsPlainRelu(activation->attributes);
}

// Whether a max pooling may ignore the zeros around the output of `padded`, as it ignores those of
// its own window. After a ReLU no value is below 0, and each window contains a part of the image
// (CanFold ensures it for windows without dilation). Hence the maximum stays the same, also for
// not-a-number, which counts as the largest in both cases.
//
// The gradient differs only where the maximum is 0: an element of the image may then get the share
// that a zero around it got before. The ReLU's gradient is 0 at such an element because the ReLU's
// output is 0 there, regardless of other readers of that output.
bool IgnoresZeros(const Op& op, const Node* padded) {
  const auto* pool = dynamic_cast<const Pool2DOp*>(&op);
  return pool != nullptr && pool->kind == Pool2DOp::Kind::kMax &&
         pool->window.dilation == std::array<int64_t, 2>{1, 1} && IsRelu(padded);
}

}  // namespace

absl::StatusOr<Graph> FoldPadding(const Graph& model) {
  // By value: the node that computes it.
  std::vector<const Node*> source(model.values().size(), nullptr);
  for (const Node& node : model.nodes()) {
    for (const ValueId output : node.outputs) source[output] = &node;
  }
  GraphCopy copy(model);
  for (const Node& node : model.nodes()) {
    const Node* pad = node.inputs.empty() ? nullptr : source[node.inputs[0]];
    const auto* padding = pad == nullptr ? nullptr : dynamic_cast<const PadOp*>(pad->op.get());
    std::shared_ptr<const Op> folded;
    if (padding != nullptr && ReadsUnrounded(node, *pad)) {
      const Margins& margins = padding->margins;
      folded = WithZeros<Conv2DOp>(*node.op, margins);
      if (folded == nullptr) folded = WithZeros<DepthwiseConv2DOp>(*node.op, margins);
      if (IgnoresZeros(*node.op, source[pad->inputs[0]]))
        folded = WithZeros<Pool2DOp>(*node.op, margins);
    }
    if (folded == nullptr) {
      SHOAL_RETURN_IF_ERROR(copy.Add(node));
      continue;
    }
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = pad->inputs[0];
    SHOAL_RETURN_IF_ERROR(copy.Add(node, std::move(folded), inputs));
  }
  return std::move(copy).Finish();
}

}  // namespace shoal
