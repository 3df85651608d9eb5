#include "worker/compute/plan/folded_padding.h"

#include <memory>
#include <vector>

#include "common/base/status_macros.h"
#include "common/model/ops/conv2d.h"
#include "common/model/ops/depthwise_conv2d.h"
#include "common/model/ops/pad.h"
#include "worker/compute/plan/graph_copy.h"

namespace shoal {
namespace {

// Whether a window can have these zeros: around the image alone, and none that a whole window
// lies in.
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

// Whether `node` computes with the values that `pad` was given. A padding layer of a narrower dtype
// rounds them first.
bool ReadsUnrounded(const Node& node, const Node& pad) {
  return pad.compute_dtype == ComputeDtype::kFloat32 || pad.compute_dtype == node.compute_dtype;
}

// The op with the zeros in its window; null where it is not an OpType or cannot have them.
template <typename OpType>
std::shared_ptr<const Op> WithZeros(const Op& op, const Margins& margins) {
  const auto* convolution = dynamic_cast<const OpType*>(&op);
  if (convolution == nullptr || !CanFold(convolution->window, margins)) return nullptr;
  auto folded = std::make_shared<OpType>(*convolution);
  for (int axis = 0; axis < 2; ++axis) {
    folded->window.zeros_before[axis] += margins.before[axis];
    folded->window.zeros_after[axis] += margins.after[axis];
  }
  return folded;
}

}  // namespace

absl::StatusOr<Graph> FoldPadding(const Graph& model) {
  // By value: the node that pads it into being.
  std::vector<const Node*> padding(model.values().size(), nullptr);
  for (const Node& node : model.nodes()) {
    if (dynamic_cast<const PadOp*>(node.op.get()) != nullptr) padding[node.outputs[0]] = &node;
  }
  GraphCopy copy(model);
  for (const Node& node : model.nodes()) {
    const Node* pad = node.inputs.empty() ? nullptr : padding[node.inputs[0]];
    std::shared_ptr<const Op> folded;
    if (pad != nullptr && ReadsUnrounded(node, *pad)) {
      const Margins& margins = static_cast<const PadOp&>(*pad->op).margins;
      folded = WithZeros<Conv2DOp>(*node.op, margins);
      if (folded == nullptr) folded = WithZeros<DepthwiseConv2DOp>(*node.op, margins);
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
