#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/shape.h"
#include "common/model/compute_dtype.h"
#include "common/model/ops/window.h"
#include "worker/compute/cuda/tuning/algorithm_trial.h"

// A computation for cuDNN, as data. operation_graph.h makes descriptors from it, errors contain its
// text, and tests read it. It does not need cuDNN.

namespace shoal::cuda {

// A tensor. Its axes have cuDNN's order, regardless of the order in memory: batch, channels,
// height, width for an image; filters, channels of a group, height, width for a filter. In memory
// the channels are last: engines with tensor cores read this layout directly.
struct GraphTensor {
  int64_t uid;  // identifies its address
  ComputeDtype type;
  std::array<int64_t, 4> dims;
  std::array<int64_t, 4> strides;  // elements
  bool is_virtual = false;         // only between two operations, not in memory

  int64_t elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  int64_t size_bytes() const { return elements() * (type == ComputeDtype::kFloat32 ? 4 : 2); }
};

// An elementwise operation on the previous result.
struct Pointwise {
  enum class Kind {
    kAddBias,  // one per channel
    kRelu,
  };
  Kind kind;
  std::optional<GraphTensor> bias;  // kAddBias
  GraphTensor result;
};

// A pass of a convolution, with the operations after it: y = x * filter, or the gradient of x or of
// the filter. In a backward pass that tensor is the result. Products are added up in float32.
struct ConvolutionGraph {
  enum class Pass { kForward, kBackwardData, kBackwardFilter };
  // The tensors' uids.
  enum Uid : int64_t { kX = 1, kFilter = 2, kY = 3, kBias = 4, kBiased = 5, kCutOff = 6 };

  Pass pass;
  GraphTensor x, filter, y;  // y: of the convolution alone
  std::array<int64_t, 2> strides, dilation, padding_before, padding_after;
  std::vector<Pointwise> after;  // for kForward, in order

  // The tensors in memory, in the order of their uids.
  std::vector<GraphTensor> tensors_in_memory() const;
  // The one of them that is the result.
  const GraphTensor& written() const;
};

// In the order of graph.tensors_in_memory().
std::vector<TrialTensor> TrialTensorsOf(const ConvolutionGraph& graph);

// The shapes of a convolution in Keras's order, with the batch size in place of kBatch.
struct ConvolutionShapes {
  Shape x;       // [B, H, W, C]
  Shape kernel;  // [kh, kw, C / groups, F]
  Shape y;       // [B, H', W', F]
};

// The operations after the convolution in a forward pass, limited to those with fast engines in
// cuDNN. It has none for a ReLU without a bias, nor for a ReLU with a maximum.
enum class ConvolutionEpilogue { kNone, kBias, kBiasAndRelu };

// Returns the graph of a pass over tensors of `type`; `ending` is for a forward pass. Values
// between two operations are float32. The filter's layout is [F, kh, kw, C / groups].
ConvolutionGraph DescribeConvolution(ConvolutionGraph::Pass pass, const Window& window,
                                     const ConvolutionShapes& shapes, ComputeDtype type,
                                     ConvolutionEpilogue ending = ConvolutionEpilogue::kNone);

// The whole graph in one line: two texts are equal exactly if the graphs are.
std::string GraphText(const ConvolutionGraph& graph);

}  // namespace shoal::cuda
