#include "tests/worker/compute/cuda/cudnn/convolutions_on_cpu.h"

#include <cmath>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "worker/compute/cuda/program/cuda_program_builder.h"

namespace shoal::cuda {
namespace {

constexpr int64_t kWorkspaceBytes = 64;

int64_t Offset(const GraphTensor& tensor, int64_t a, int64_t b, int64_t c, int64_t d) {
  return a * tensor.strides[0] + b * tensor.strides[1] + c * tensor.strides[2] +
         d * tensor.strides[3];
}

// Calls visit(x, filter, y), with offsets, for every product that the convolution adds up.
template <typename Visit>
void ForEachProduct(const ConvolutionGraph& graph, const Visit& visit) {
  const auto& [filters, channels, height, width] = graph.filter.dims;
  const int64_t group_filters = filters / (graph.x.dims[1] / channels);
  const auto& y = graph.y.dims;
  for (int64_t b = 0; b < y[0]; ++b) {
    for (int64_t oh = 0; oh < y[2]; ++oh) {
      for (int64_t ow = 0; ow < y[3]; ++ow) {
        for (int64_t kh = 0; kh < height; ++kh) {
          const int64_t h =
              oh * graph.strides[0] + kh * graph.dilation[0] - graph.padding_before[0];
          if (h < 0 || h >= graph.x.dims[2]) continue;
          for (int64_t kw = 0; kw < width; ++kw) {
            const int64_t w =
                ow * graph.strides[1] + kw * graph.dilation[1] - graph.padding_before[1];
            if (w < 0 || w >= graph.x.dims[3]) continue;
            for (int64_t f = 0; f < filters; ++f) {
              const int64_t first = f / group_filters * channels;
              for (int64_t c = 0; c < channels; ++c) {
                visit(Offset(graph.x, b, first + c, h, w), Offset(graph.filter, f, c, kh, kw),
                      Offset(graph.y, b, f, oh, ow));
              }
            }
          }
        }
      }
    }
  }
}

// As many zeros behind as cuDNN is told of must give the extents that it is told of.
bool ExtentsAgree(const ConvolutionGraph& graph) {
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t reach = (graph.filter.dims[2 + axis] - 1) * graph.dilation[axis] + 1;
    const int64_t padded =
        graph.x.dims[2 + axis] + graph.padding_before[axis] + graph.padding_after[axis];
    if ((padded - reach) / graph.strides[axis] + 1 != graph.y.dims[2 + axis]) return false;
  }
  return true;
}

class KernelOnCpu : public Kernel {
 public:
  explicit KernelOnCpu(const ConvolutionGraph& graph) : graph_(graph) {}

  absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
    std::map<int64_t, std::vector<float>> values;  // by uid
    size_t next = 0;
    for (const GraphTensor& tensor : graph_.tensors_in_memory()) {
      WithElement(tensor.type, [&]<typename Element>(Element) {
        const auto* const from = static_cast<const Element*>(tensors[next]);
        for (int64_t i = 0; i < tensor.elements(); ++i)
          values[tensor.uid].push_back(ToFloat(from[i]));
      });
      ++next;
    }
    std::memset(tensors[next], 0xff, kWorkspaceBytes);
    const auto at = [&](const GraphTensor& tensor) {
      std::vector<float>& of_tensor = values[tensor.uid];
      of_tensor.resize(tensor.elements());
      return of_tensor.data();
    };
    Convolve(at(graph_.x), at(graph_.filter), at(graph_.y));
    const float* from = at(graph_.y);
    for (const Pointwise& pointwise : graph_.after) {
      float* const to = at(pointwise.result);
      const float* const bias = pointwise.bias.has_value() ? at(*pointwise.bias) : nullptr;
      const int64_t channels = pointwise.result.dims[1];
      for (int64_t i = 0; i < pointwise.result.elements(); ++i) {
        to[i] = bias != nullptr ? from[i] + bias[i % channels]
                                : (from[i] > 0 || std::isnan(from[i]) ? from[i] : 0);
      }
      from = to;
    }
    const std::vector<GraphTensor> in_memory = graph_.tensors_in_memory();
    for (size_t i = 0; i < in_memory.size(); ++i) {
      if (in_memory[i].uid != graph_.written().uid) continue;
      WithElement(in_memory[i].type, [&]<typename Element>(Element) {
        auto* to = static_cast<Element*>(tensors[i]);
        for (const float value : values.at(in_memory[i].uid)) *(to++) = FromFloat<Element>(value);
      });
    }
    return absl::OkStatus();
  }

 private:
  void Convolve(float* x, float* filter, float* y) const {
    const bool data = graph_.pass == ConvolutionGraph::Pass::kBackwardData;
    const bool forward = graph_.pass == ConvolutionGraph::Pass::kForward;
    const GraphTensor& result = forward ? graph_.y : data ? graph_.x : graph_.filter;
    std::fill_n(forward ? y : data ? x : filter, result.elements(), 0.0f);
    ForEachProduct(graph_, [&](int64_t at_x, int64_t at_filter, int64_t at_y) {
      if (forward) {
        y[at_y] += x[at_x] * filter[at_filter];
      } else if (data) {
        x[at_x] += y[at_y] * filter[at_filter];
      } else {
        filter[at_filter] += x[at_x] * y[at_y];
      }
    });
  }

  const ConvolutionGraph graph_;
};

}  // namespace

absl::StatusOr<Convolutions::Made> ConvolutionsOnCpu::Make(const ConvolutionGraph& graph,
                                                           bool /*trains*/, const NodeName&) {
  if (!ExtentsAgree(graph))
    return absl::InternalError("cuDNN would see another y: " + GraphText(graph));
  return Made{std::make_unique<KernelOnCpu>(graph), kWorkspaceBytes};
}

}  // namespace shoal::cuda
