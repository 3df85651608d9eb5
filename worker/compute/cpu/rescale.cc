#include "common/model/ops/rescale.h"

#include <algorithm>
#include <vector>

#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/loop_kernel.h"

namespace shoal::cpu {
namespace {

template <typename From, typename To>
SHOAL_INLINE void RescaleOf(const From* x, const float* scale, const float* offset, int64_t pixels,
                            int64_t channels, To* y) {
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t c = 0; c < channels; ++c) {
      y[p * channels + c] = FromFloat<To>(ToFloat(x[p * channels + c]) * scale[c] + offset[c]);
    }
  }
}
SHOAL_VECTORIZED void RescaleLoop(const float* x, const float* scale, const float* offset,
                                  int64_t pixels, int64_t channels, float* y) {
  RescaleOf(x, scale, offset, pixels, channels, y);
}
SHOAL_VECTORIZED void RescaleLoop(const float* x, const float* scale, const float* offset,
                                  int64_t pixels, int64_t channels, BFloat16* y) {
  RescaleOf(x, scale, offset, pixels, channels, y);
}
SHOAL_VECTORIZED void RescaleLoop(const BFloat16* x, const float* scale, const float* offset,
                                  int64_t pixels, int64_t channels, float* y) {
  RescaleOf(x, scale, offset, pixels, channels, y);
}
SHOAL_VECTORIZED void RescaleLoop(const BFloat16* x, const float* scale, const float* offset,
                                  int64_t pixels, int64_t channels, BFloat16* y) {
  RescaleOf(x, scale, offset, pixels, channels, y);
}

}  // namespace

absl::Status Rescale(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto& op = static_cast<const RescaleOp&>(*node.op);
  const Shape shape = builder.shape(node.outputs[0]);
  // One factor for all elements equals rows of any length with equal factors.
  const int64_t elements = ElementCount(shape);
  const bool per_channel = op.scale.size() > 1 || op.offset.size() > 1;
  const int64_t channels = per_channel ? shape.back() : std::min<int64_t>(elements, 64);
  std::vector<float> scale(channels), offset(channels);
  for (int64_t c = 0; c < channels; ++c) {
    scale[c] = static_cast<float>(op.scale[op.scale.size() == 1 ? 0 : c]);
    offset[c] = static_cast<float>(op.offset[op.offset.size() == 1 ? 0 : c]);
  }
  // The pixels of a model's input are float32. They need no copy in another type.
  const TensorId x = program.RowMajorAsStored(node.inputs[0]);
  const ComputeDtype type = program.stored_dtype(node);
  const std::vector<TensorId> tensors = {x, builder.Output(node.outputs[0], type)};
  WithElement(builder.tensor_info(x).type, [&]<typename From>(From) {
    WithElement(type, [&]<typename To>(To) {
      AddLoopStep(
          elements, kElementGrain, tensors,
          [scale, offset, channels, elements](const RunContext&, const LoopTensors& data,
                                              int64_t begin, int64_t end) {
            // Whole rows, then the incomplete row at the end.
            begin = begin / channels * channels;
            end = end == elements ? end : end / channels * channels;
            const int64_t rows = (end - begin) / channels;
            RescaleLoop(data.At<From>(0) + begin, scale.data(), offset.data(), rows, channels,
                        data.At<To>(1) + begin);
            begin += rows * channels;
            RescaleLoop(data.At<From>(0) + begin, scale.data(), offset.data(), 1, end - begin,
                        data.At<To>(1) + begin);
          },
          program);
    });
  });
  return absl::OkStatus();
}

}  // namespace shoal::cpu
