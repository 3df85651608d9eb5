#include "common/model/ops/depthwise_conv2d.h"

#include <algorithm>
#include <utility>

#include "worker/compute/cuda/kernels/depthwise_conv2d.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {
namespace {

// Extents of a depthwise convolution on images of shape `x`.
struct DepthwiseExtents {
  DepthwiseExtents(const Window& window, const Shape& x, int64_t filters)
      : window(window, x),
        batch(x[0]),
        channels(static_cast<int32_t>(x[3])),
        multiplier(static_cast<int32_t>(filters / x[3])) {}
  SlidingWindow window;
  int64_t batch;
  int32_t channels, multiplier;

  int32_t filters() const { return channels * multiplier; }
  // The extent that packs divide: 1 if a channel has several filters, because packs are then
  // single.
  int64_t packed() const { return multiplier == 1 ? channels : 1; }
};

}  // namespace

absl::Status DepthwiseConv2D(const Node& node, CudaProgramBuilder& program) {
  const DepthwiseExtents extents(static_cast<const DepthwiseConv2DOp&>(*node.op).window,
                                 program.shape(node.inputs[0]), program.shape(node.outputs[0])[3]);
  const ComputeDtype kept = program.stored_dtype(node);
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    TensorList tensors;
    const auto x = tensors.Add<Element>(program.tensor(node.inputs[0], kept));
    const auto kernel = tensors.Add(program.tensor(node.inputs[1]));
    TensorHandle<float> bias;
    if (node.inputs.size() == 3) bias = tensors.Add(program.tensor(node.inputs[2]));
    const auto y = tensors.Add<Element>(program.Output(node.outputs[0], kept));
    WithLines(extents.window, extents.multiplier,
              [&]<int stride>(std::integral_constant<int, stride>) {
                AddKernel(
                    node, std::move(tensors).Take(),
                    [=](const StepTensors& at) {
                      if constexpr (stride > 0) {
                        return DepthwiseLinesKernel<Element, width, stride>{
                            extents.window, extents.batch, extents.channels, false,
                            at[x],          at[kernel],    at[bias],         at[y]};
                      } else {
                        return DepthwiseConv2DKernel<Element, width>{
                            extents.window, extents.batch, extents.channels, extents.multiplier,
                            at[x],          at[kernel],    at[bias],         at[y]};
                      }
                    },
                    program);
              });
  };
  WithPacks(kept, extents.packed(), add);
  return absl::OkStatus();
}

absl::Status DepthwiseConv2DBackwardData(const Node& node, CudaProgramBuilder& program) {
  const DepthwiseExtents extents(static_cast<const DepthwiseConv2DBackwardDataOp&>(*node.op).window,
                                 program.shape(node.outputs[0]), program.shape(node.inputs[0])[3]);
  const ComputeDtype kept = program.stored_dtype(node);
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    TensorList tensors;
    const auto dy = tensors.Add<Element>(program.tensor(node.inputs[0], kept));
    const auto kernel = tensors.Add(program.tensor(node.inputs[1]));
    const auto dx = tensors.Add<Element>(program.Output(node.outputs[0], kept));
    if (LinesSupportInputGradient(extents.window, extents.multiplier)) {
      AddKernel(
          node, std::move(tensors).Take(),
          [=](const StepTensors& at) {
            return DepthwiseLinesKernel<Element, width, 1>{extents.window.Transposed(),
                                                           extents.batch,
                                                           extents.channels,
                                                           true,
                                                           at[dy],
                                                           at[kernel],
                                                           nullptr,
                                                           at[dx]};
          },
          program);
      return;
    }
    AddKernel(
        node, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return DepthwiseConv2DBackwardDataKernel<Element, width>{
              extents.window, extents.batch, extents.channels, extents.multiplier, at[dy],
              at[kernel],     at[dx]};
        },
        program);
  };
  WithPacks(kept, extents.packed(), add);
  return absl::OkStatus();
}

absl::Status DepthwiseConv2DBackwardWeights(const Node& node, CudaProgramBuilder& program) {
  const DepthwiseExtents extents(
      static_cast<const DepthwiseConv2DBackwardWeightsOp&>(*node.op).window,
      program.shape(node.inputs[0]), program.shape(node.inputs[1])[3]);
  const int64_t columns = extents.filters();
  const int64_t rows = ElementCount(program.shape(node.inputs[1])) / columns;
  const int32_t taps = extents.window.h.size * extents.window.w.size;
  const TensorId dkernel = program.Output(node.outputs[0]);
  const ComputeDtype type = node.compute_dtype;
  const TensorId x = program.tensor(node.inputs[0], type);
  const TensorId dy = program.tensor(node.inputs[1], type);
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    using Terms = DepthwiseConv2DWeightTerms<Element, width>;
    static_assert(width <= kWidestWeightPack);
    const ColumnSlices slices(rows, columns / width, program.target().few_blocks());
    const TensorId partial = program.Scratch(slices.count * Terms::kSums * columns);
    for (int32_t first = 0; first < taps; first += Terms::kTaps) {
      TensorList tensors;
      const auto in = tensors.Add<Element>(x), of_dy = tensors.Add<Element>(dy);
      const auto sums = tensors.Add(partial);
      AddKernel(
          node, std::move(tensors).Take(),
          [=](const StepTensors& at) {
            return ColumnSumsKernel<Terms>{
                {extents.window, extents.channels, extents.multiplier, at[in], at[of_dy], first},
                slices,
                columns,
                at[sums]};
          },
          program);
      TensorList last;
      const auto from = last.Add(partial), to = last.Add(dkernel);
      AddKernel(
          node, std::move(last).Take(),
          [=](const StepTensors& at) {
            SumOfSlicesKernel<Terms::kTaps> sum = {at[from], slices.count, columns, {}};
            for (int32_t tap = first; tap < std::min(taps, first + Terms::kTaps); ++tap) {
              sum.to[tap - first] = at[to] + tap * columns;
            }
            return sum;
          },
          program);
    }
  };
  // Packs as wide as for float32: a block shares the sums of all.
  WithElement(type, [&](auto element) {
    WithWidth<float>(extents.packed(), [&](auto width) { add(element, width); });
  });
  return absl::OkStatus();
}

}  // namespace shoal::cuda
