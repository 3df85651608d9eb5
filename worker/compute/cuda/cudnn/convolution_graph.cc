#include "worker/compute/cuda/cudnn/convolution_graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shoal::cuda {
namespace {

// A tensor with the channels last in memory.
GraphTensor ChannelsLast(ConvolutionGraph::Uid uid, ComputeDtype type,
                         const std::array<int64_t, 4>& dims) {
  const auto [batch, channels, height, width] = dims;
  return {.uid = uid,
          .type = type,
          .dims = dims,
          .strides = {channels * height * width, 1, width * channels, channels}};
}

GraphTensor Image(ConvolutionGraph::Uid uid, ComputeDtype type, const Shape& shape) {
  return ChannelsLast(uid, type, {shape[0], shape[3], shape[1], shape[2]});
}

void AddPointwise(Pointwise::Kind kind, ConvolutionGraph::Uid uid, ComputeDtype type,
                  ConvolutionGraph& graph) {
  // The previous result is now only between two operations.
  GraphTensor& before = graph.after.empty() ? graph.y : graph.after.back().result;
  before.is_virtual = true;
  before.type = ComputeDtype::kFloat32;
  Pointwise added = {.kind = kind, .result = graph.y};
  added.result.uid = uid;
  added.result.type = type;
  added.result.is_virtual = false;
  graph.after.push_back(added);
}

std::string TensorText(const GraphTensor& tensor) {
  return absl::StrCat(tensor.uid, ":", NameOf(tensor.type), "[", absl::StrJoin(tensor.dims, ","),
                      "/", absl::StrJoin(tensor.strides, ","), "]", tensor.is_virtual ? "v" : "");
}

const char* PassText(ConvolutionGraph::Pass pass) {
  switch (pass) {
    case ConvolutionGraph::Pass::kForward:
      return "forward";
    case ConvolutionGraph::Pass::kBackwardData:
      return "backward-data";
    case ConvolutionGraph::Pass::kBackwardFilter:
      return "backward-filter";
  }
  return "";
}

}  // namespace

std::vector<GraphTensor> ConvolutionGraph::tensors_in_memory() const {
  std::vector<GraphTensor> tensors = {x, filter, y};
  for (const Pointwise& pointwise : after) {
    if (pointwise.bias.has_value()) tensors.push_back(*pointwise.bias);
    tensors.push_back(pointwise.result);
  }
  std::erase_if(tensors, [](const GraphTensor& tensor) { return tensor.is_virtual; });
  return tensors;
}

const GraphTensor& ConvolutionGraph::written() const {
  if (!after.empty()) return after.back().result;
  if (pass == Pass::kForward) return y;
  return pass == Pass::kBackwardData ? x : filter;
}

std::vector<TrialTensor> TrialTensorsOf(const ConvolutionGraph& graph) {
  std::vector<TrialTensor> tensors;
  for (const GraphTensor& tensor : graph.tensors_in_memory()) {
    tensors.push_back({.type = tensor.type,
                       .elements = tensor.elements(),
                       .written = tensor.uid == graph.written().uid});
  }
  return tensors;
}

ConvolutionGraph DescribeConvolution(ConvolutionGraph::Pass pass, const Window& window,
                                     const ConvolutionShapes& shapes, ComputeDtype type,
                                     ConvolutionEpilogue ending) {
  const Shape& kernel = shapes.kernel;
  ConvolutionGraph graph = {.pass = pass,
                            .x = Image(ConvolutionGraph::kX, type, shapes.x),
                            .filter = ChannelsLast(ConvolutionGraph::kFilter, type,
                                                   {kernel[3], kernel[2], kernel[0], kernel[1]}),
                            .y = Image(ConvolutionGraph::kY, type, shapes.y),
                            .strides = window.strides,
                            .dilation = window.dilation};
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t in = shapes.x[1 + axis], out = shapes.y[1 + axis];
    const int64_t reach = (window.size[axis] - 1) * window.dilation[axis] + 1;
    graph.padding_before[axis] = window.PaddingBefore(axis, in);
    // Pad as far as the last window reaches; a border that no window reaches is no padding.
    graph.padding_after[axis] = std::max<int64_t>(
        0, (out - 1) * window.strides[axis] + reach - in - graph.padding_before[axis]);
  }
  if (ending != ConvolutionEpilogue::kNone) {
    AddPointwise(Pointwise::Kind::kAddBias, ConvolutionGraph::kBiased, type, graph);
    graph.after.back().bias = ChannelsLast(ConvolutionGraph::kBias, type, {1, kernel[3], 1, 1});
  }
  if (ending == ConvolutionEpilogue::kBiasAndRelu) {
    AddPointwise(Pointwise::Kind::kRelu, ConvolutionGraph::kCutOff, type, graph);
  }
  return graph;
}

std::string GraphText(const ConvolutionGraph& graph) {
  std::string text =
      absl::StrCat(PassText(graph.pass), " ", TensorText(graph.x), " ", TensorText(graph.filter),
                   " ", TensorText(graph.y), " strides=", absl::StrJoin(graph.strides, ","),
                   " dilation=", absl::StrJoin(graph.dilation, ","),
                   " before=", absl::StrJoin(graph.padding_before, ","),
                   " after=", absl::StrJoin(graph.padding_after, ","));
  for (const Pointwise& pointwise : graph.after) {
    if (pointwise.kind == Pointwise::Kind::kAddBias) {
      absl::StrAppend(&text, " bias ", TensorText(*pointwise.bias));
    } else {
      absl::StrAppend(&text, " relu");
    }
    absl::StrAppend(&text, " ", TensorText(pointwise.result));
  }
  return text;
}

}  // namespace shoal::cuda
