#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/shape.h"
#include "common/model/compute_dtype.h"
#include "common/model/ops/window.h"
#include "worker/compute/cuda/trial.h"

// What cuDNN is asked to compute, as data: descriptors are made of it (operation_graph.h), its text
// is in errors, and tests read it. Nothing of cuDNN's is needed for it.

namespace shoal::cuda {

// A tensor. Axes have cuDNN's order, whatever their order in memory: batch, channels, height, width
// of an image, and filters, channels of a group, height, width of a filter. In memory channels are
// last, which is what engines with tensor cores read as it is.
struct GraphTensor {
  int64_t uid;  // what its address is given by
  ComputeDtype type;
  std::array<int64_t, 4> dims;
  std::array<int64_t, 4> strides;  // elements
  bool is_virtual = false;         // between two operations, in no memory

  int64_t elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  int64_t size_bytes() const { return elements() * (type == ComputeDtype::kFloat32 ? 4 : 2); }
};

// One element of the result each from one of what was computed before.
struct Pointwise {
  enum class Kind {
    kAddBias,  // of each channel
    kRelu,
  };
  Kind kind;
  std::optional<GraphTensor> bias;  // kAddBias
  GraphTensor result;
};

// A pass of a convolution, with what follows it: y = x * filter, or the gradient of x or of the
// filter, which are then what is written. Products are added up in float32.
struct ConvolutionGraph {
  enum class Pass { kForward, kBackwardData, kBackwardFilter };
  // The tensors' uids.
  enum Uid : int64_t { kX = 1, kFilter = 2, kY = 3, kBias = 4, kBiased = 5, kCutOff = 6 };

  Pass pass;
  GraphTensor x, filter, y;  // y: of the convolution alone
  std::array<int64_t, 2> strides, dilation, padding_before, padding_after;
  std::vector<Pointwise> after;  // of kForward, in order

  // The tensors that lie in memory, in the order of their uids.
  std::vector<GraphTensor> tensors_in_memory() const;
  // The one of them that is computed.
  const GraphTensor& written() const;
};

// As graph.tensors_in_memory().
std::vector<TrialTensor> TrialTensorsOf(const ConvolutionGraph& graph);

// What is described: extents in Keras's order, with the batch size in place of kBatch.
struct ConvolutionShapes {
  Shape x;       // [B, H, W, C]
  Shape kernel;  // [kh, kw, C / groups, F]
  Shape y;       // [B, H', W', F]
};

// What a forward pass has besides the convolution: what cuDNN has fast engines for. It has none for
// a ReLU without a bias, nor for one that is cut off above.
enum class ConvolutionEnding { kNone, kBias, kBiasAndRelu };

// The graph of a pass over tensors of `type`; `ending` of a forward pass. What is between two
// operations is float32. The filter lies as [F, kh, kw, C / groups] (filter_layout.h).
ConvolutionGraph DescribeConvolution(ConvolutionGraph::Pass pass, const Window& window,
                                     const ConvolutionShapes& shapes, ComputeDtype type,
                                     ConvolutionEnding ending = ConvolutionEnding::kNone);

// All of it in a line: equal exactly where the graphs are.
std::string GraphText(const ConvolutionGraph& graph);

}  // namespace shoal::cuda
