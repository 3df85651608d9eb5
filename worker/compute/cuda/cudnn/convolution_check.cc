#include "worker/compute/cuda/cudnn/convolution_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/compute/cuda/kernels/with_element.h"

namespace shoal::cuda {
namespace {

using Pass = ConvolutionGraph::Pass;

// The max number of products to compute, over all places.
constexpr int64_t kMaxProducts = 4 << 20;
constexpr int64_t kMinPlaces = 2;

// The indices of the element at `offset`.
std::array<int64_t, 4> IndicesOf(const GraphTensor& tensor, int64_t offset) {
  std::array<int64_t, 4> indices = {};
  for (;;) {
    // The outermost axis without an index yet.
    int outer = -1;
    for (int axis = 0; axis < 4; ++axis) {
      const bool walked = indices[axis] != 0 || tensor.dims[axis] == 1;
      if (walked || tensor.strides[axis] > offset) continue;
      if (outer < 0 || tensor.strides[axis] > tensor.strides[outer]) outer = axis;
    }
    if (outer < 0) return indices;
    indices[outer] = offset / tensor.strides[outer];
    offset %= tensor.strides[outer];
  }
}

// The numbers of a tensor, rounded to its type: those of TrialNumber, up to their period.
std::vector<float> NumbersOf(const GraphTensor& tensor, size_t index) {
  std::vector<float> numbers(std::min(tensor.elements(), TrialNumbers(index)));
  WithElement(tensor.type, [&]<typename Element>(Element) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = ToFloat(FromFloat<Element>(TrialNumber(index, static_cast<int64_t>(i))));
    }
  });
  return numbers;
}

// Computes a pass by its definition.
class Definition {
 public:
  explicit Definition(const ConvolutionGraph& graph) : graph_(graph) {
    const std::vector<GraphTensor> tensors = graph.tensors_in_memory();
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].uid != graph.written().uid)
        numbers_[tensors[i].uid] = NumbersOf(tensors[i], i);
    }
  }

  // The max number of products that one element of the result adds up.
  int64_t products() const {
    const auto& filter = graph_.filter.dims;
    switch (graph_.pass) {
      case Pass::kForward:
        return filter[1] * filter[2] * filter[3];
      case Pass::kBackwardData:
        return group_filters() * filter[2] * filter[3];
      case Pass::kBackwardFilter:
        break;
    }
    return graph_.y.dims[0] * graph_.y.dims[2] * graph_.y.dims[3];
  }

  double ValueAt(int64_t offset) const {
    const std::array<int64_t, 4> at = IndicesOf(graph_.written(), offset);
    if (graph_.pass == Pass::kBackwardData) return DataGradient(at);
    if (graph_.pass == Pass::kBackwardFilter) return FilterGradient(at);
    double value = Forward(at);
    for (const Pointwise& pointwise : graph_.after) {
      if (pointwise.bias.has_value()) {
        value += Number(*pointwise.bias, {0, at[1], 0, 0});
      } else {
        value = std::max(value, 0.0);
      }
    }
    return value;
  }

 private:
  int64_t group_filters() const {
    return graph_.filter.dims[0] / (graph_.x.dims[1] / graph_.filter.dims[1]);
  }
  double Number(const GraphTensor& tensor, const std::array<int64_t, 4>& at) const {
    int64_t offset = 0;
    for (int axis = 0; axis < 4; ++axis) offset += at[axis] * tensor.strides[axis];
    const std::vector<float>& numbers = numbers_[tensor.uid];
    return numbers[offset % static_cast<int64_t>(numbers.size())];
  }
  // The position that the window at `out` reads with `tap`, along an axis of the image.
  int64_t In(int axis, int64_t out, int64_t tap) const {
    return out * graph_.strides[axis] + tap * graph_.dilation[axis] - graph_.padding_before[axis];
  }
  bool Inside(int axis, int64_t in) const { return in >= 0 && in < graph_.x.dims[2 + axis]; }

  double Forward(const std::array<int64_t, 4>& at) const {
    const auto& [batch, of, oh, ow] = at;
    const int64_t first = of / group_filters() * graph_.filter.dims[1];
    double sum = 0;
    for (int64_t kh = 0; kh < graph_.filter.dims[2]; ++kh) {
      for (int64_t kw = 0; kw < graph_.filter.dims[3]; ++kw) {
        const int64_t h = In(0, oh, kh), w = In(1, ow, kw);
        if (!Inside(0, h) || !Inside(1, w)) continue;
        for (int64_t c = 0; c < graph_.filter.dims[1]; ++c)
          sum +=
              Number(graph_.x, {batch, first + c, h, w}) * Number(graph_.filter, {of, c, kh, kw});
      }
    }
    return sum;
  }
  double DataGradient(const std::array<int64_t, 4>& at) const {
    const auto& [batch, channel, h, w] = at;
    const int64_t group = channel / graph_.filter.dims[1];
    const int64_t c = channel % graph_.filter.dims[1];
    double sum = 0;
    for (int64_t kh = 0; kh < graph_.filter.dims[2]; ++kh) {
      for (int64_t kw = 0; kw < graph_.filter.dims[3]; ++kw) {
        const int64_t down = h - In(0, 0, kh), right = w - In(1, 0, kw);
        if (down < 0 || right < 0 || down % graph_.strides[0] != 0 ||
            right % graph_.strides[1] != 0)
          continue;
        const int64_t oh = down / graph_.strides[0], ow = right / graph_.strides[1];
        if (oh >= graph_.y.dims[2] || ow >= graph_.y.dims[3]) continue;
        for (int64_t f = 0; f < group_filters(); ++f) {
          const int64_t of = group * group_filters() + f;
          sum += Number(graph_.y, {batch, of, oh, ow}) * Number(graph_.filter, {of, c, kh, kw});
        }
      }
    }
    return sum;
  }
  double FilterGradient(const std::array<int64_t, 4>& at) const {
    const auto& [of, c, kh, kw] = at;
    const int64_t channel = of / group_filters() * graph_.filter.dims[1] + c;
    double sum = 0;
    for (int64_t batch = 0; batch < graph_.y.dims[0]; ++batch) {
      for (int64_t oh = 0; oh < graph_.y.dims[2]; ++oh) {
        for (int64_t ow = 0; ow < graph_.y.dims[3]; ++ow) {
          const int64_t h = In(0, oh, kh), w = In(1, ow, kw);
          if (!Inside(0, h) || !Inside(1, w)) continue;
          sum += Number(graph_.x, {batch, channel, h, w}) * Number(graph_.y, {batch, of, oh, ow});
        }
      }
    }
    return sum;
  }

  const ConvolutionGraph& graph_;
  std::array<std::vector<float>, ConvolutionGraph::kCutOff + 1> numbers_;  // by uid
};

}  // namespace

absl::Status ConvolutionCheck::Check(const AlgorithmTrial& trial) {
  const SamplePlaces sampled(graph_.written().elements());
  if (static_cast<int64_t>(trial.sample.size()) != sampled.count)
    return absl::InternalError(absl::StrCat("a sample of ", trial.sample.size()));
  if (places_.empty()) {
    const Definition definition(graph_);
    const int64_t count = std::clamp(kMaxProducts / std::max<int64_t>(1, definition.products()),
                                     std::min(kMinPlaces, sampled.count), sampled.count);
    for (int64_t i = 0; i < count; ++i) {
      // Spread from the first to the last sample.
      const int64_t which = count == 1 ? 0 : i * (sampled.count - 1) / (count - 1);
      places_.push_back({static_cast<size_t>(which), definition.ValueAt(which * sampled.apart)});
    }
  }
  float largest = 0;
  for (const float value : trial.sample) largest = std::max(largest, std::abs(value));
  for (const auto& [which, right] : places_) {
    const double bound = trial.tolerance * std::max(std::abs(right), double{largest});
    if (std::abs(trial.sample[which] - right) <= bound) continue;
    return absl::DataLossError(absl::StrCat("element ", static_cast<int64_t>(which) * sampled.apart,
                                            " is ", trial.sample[which], "; expected ", right, ": ",
                                            GraphText(graph_)));
  }
  return absl::OkStatus();
}

}  // namespace shoal::cuda
