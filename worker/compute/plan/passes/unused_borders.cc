#include "worker/compute/plan/passes/unused_borders.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/ops/activation.h"
#include "common/model/ops/conv2d.h"
#include "common/model/ops/pad.h"
#include "common/model/ops/pool2d.h"
#include "common/model/ops/rescale.h"
#include "worker/compute/plan/passes/graph_copy.h"

namespace shoal {
namespace {

using Extents = std::array<int64_t, 2>;  // height, width

bool IsImage(const Value& value) { return value.shape.size() == 4 && value.shape[0] == kBatch; }

// The window of an op that reads only elements under its windows, and no zeros around the image;
// null for other ops.
const Window* ValidWindow(const Op& op) {
  const Window* window = nullptr;
  if (const auto* conv = dynamic_cast<const Conv2DOp*>(&op)) window = &conv->window;
  if (const auto* pool = dynamic_cast<const Pool2DOp*>(&op)) window = &pool->window;
  constexpr std::array<int64_t, 2> kNone = {0, 0};
  if (window == nullptr || window->padding != Padding::kValid || window->zeros_before != kNone ||
      window->zeros_after != kNone) {
    return nullptr;
  }
  return window;
}

// Whether each element of the output depends only on the same element of the input. A
// normalization's does not: its statistics depend on all elements.
bool IsElementwise(const Op& op) {
  return dynamic_cast<const ActivationOp*>(&op) != nullptr ||
         dynamic_cast<const RescaleOp*>(&op) != nullptr;
}

// By value: the extent of an image that the model's output or a penalty depends on.
std::vector<Extents> ReadExtents(const Graph& model) {
  std::vector<Extents> read(model.values().size(), Extents{0, 0});
  const auto full = [&](ValueId value) {
    const Shape& shape = model.value(value).shape;
    return Extents{shape[1], shape[2]};
  };
  const auto extend = [&](ValueId value, const Extents& by) {
    for (int axis = 0; axis < 2; ++axis) {
      read[value][axis] = std::max(read[value][axis], by[axis]);
    }
  };
  for (const ValueId output : model.outputs()) {
    if (IsImage(model.value(output))) extend(output, full(output));
  }
  for (const Graph::ActivityPenalty& penalty : model.activity_penalties()) {
    if (IsImage(model.value(penalty.value))) extend(penalty.value, full(penalty.value));
  }
  for (int i = static_cast<int>(model.nodes().size()) - 1; i >= 0; --i) {
    const Node& node = model.nodes()[i];
    const Extents& wanted = read[node.outputs[0]];
    const Window* window = ValidWindow(*node.op);
    for (const ValueId input : node.inputs) {
      if (!IsImage(model.value(input))) continue;
      if (window != nullptr) {
        Extents covered;
        for (int axis = 0; axis < 2; ++axis) {
          const int64_t reach = (window->size[axis] - 1) * window->dilation[axis] + 1;
          covered[axis] = (wanted[axis] - 1) * window->strides[axis] + reach;
        }
        extend(input, covered);
      } else {
        extend(input, IsElementwise(*node.op) ? wanted : full(input));
      }
    }
  }
  return read;
}

}  // namespace

absl::StatusOr<Graph> CropUnusedBorders(const Graph& model) {
  const std::vector<Extents> read = ReadExtents(model);
  GraphCopy cropped(model);
  for (const ValueId input : model.inputs()) {
    const Value& value = model.value(input);
    const auto [height, width] = read[input];
    if (!IsImage(value) || height == 0 || (height == value.shape[1] && width == value.shape[2])) {
      continue;
    }
    auto crop = std::make_shared<CropOp>();
    crop->margins = {.before = {0, 0, 0},
                     .after = {value.shape[1] - height, value.shape[2] - width, 0}};
    SHOAL_ASSIGN_OR_RETURN(const ValueId rest,
                           cropped.Insert(std::move(crop), {cropped.of(input)}, "crop"));
    cropped.Replace(input, rest);
  }
  bool smaller = false;
  for (const Node& node : model.nodes()) {
    SHOAL_RETURN_IF_ERROR(cropped.Add(node));
    smaller = smaller || (dynamic_cast<const Conv2DOp*>(node.op.get()) != nullptr &&
                          cropped.graph().value(cropped.of(node.outputs[0])).shape !=
                              model.value(node.outputs[0]).shape);
  }
  if (!smaller) return model;
  return std::move(cropped).Finish();
}

}  // namespace shoal
