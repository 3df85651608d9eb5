#include "common/model/ops/pool2d.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "worker/compute/cuda/kernels/pool2d.h"
#include "worker/compute/cuda/program/kernel_step.h"
#include "worker/compute/plan/fusion.h"

namespace shoal::cuda {
namespace {

// Extents of a pooling on images of shape `x`.
struct PoolExtents {
  PoolExtents(const Window& window, const Shape& x)
      : window(window, x), batch(x[0]), channels(static_cast<int32_t>(x[3])) {}
  SlidingWindow window;
  int64_t batch;
  int32_t channels;

  FastDivisor by_packs(int width) const { return FastDivisor(channels / width); }
};

// Whether the program computes the gradient of the pooling with this output.
bool HasPoolGradient(ValueId pooled, CudaProgramBuilder& program) {
  const Plan& plan = program.builder().plan();
  const std::vector<int>& consumers = plan.consumers(pooled);
  return std::any_of(consumers.begin(), consumers.end(), [&](int consumer) {
    return OpAt<Pool2DBackwardOp>(plan, consumer) != nullptr &&
           plan.nodes()[consumer].inputs[1] == pooled;
  });
}

struct PoolTensors {
  TensorId x, y;
};
void AddMaxPool2D(const Node& node, const PoolExtents& extents, ComputeDtype type,
                  const PoolTensors& pool, CudaProgramBuilder& program) {
  const ValueId pooled = node.outputs[0];
  const bool keeps_taps = HasPoolGradient(pooled, program);
  WithTap(extents.window, [&]<typename Tap>(Tap) {
    const TensorId kept_taps = keeps_taps ? program.Scratch<Tap>(program.count(pooled)) : -1;
    if (keeps_taps) program.SetTapsOf(pooled, kept_taps);
    const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
      TensorList tensors;
      const auto x = tensors.Add<Element>(pool.x), y = tensors.Add<Element>(pool.y);
      TensorHandle<Tap> taps;
      if (keeps_taps) taps = tensors.Add<Tap>(kept_taps);
      AddKernel(
          node, std::move(tensors).Take(),
          [=, by_packs = extents.by_packs(width)](const StepTensors& at) {
            return MaxPool2DKernel<Element, Tap, width>{
                extents.window, extents.batch, extents.channels, by_packs, at[x], at[y], at[taps]};
          },
          program);
    };
    WithPacks(type, extents.channels, add);
  });
}

struct PoolGradientTensors {
  TensorId taps, dy, dx;
};
void AddMaxPool2DBackward(const Node& node, const PoolExtents& extents, ComputeDtype type,
                          const PoolGradientTensors& pool, CudaProgramBuilder& program) {
  WithTap(extents.window, [&]<typename Tap>(Tap) {
    const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
      TensorList tensors;
      const auto taps = tensors.Add<Tap>(pool.taps);
      const auto dy = tensors.Add<Element>(pool.dy), dx = tensors.Add<Element>(pool.dx);
      AddKernel(
          node, std::move(tensors).Take(),
          [=, by_packs = extents.by_packs(width)](const StepTensors& at) {
            return MaxPool2DBackwardKernel<Element, Tap, width>{
                extents.window, extents.batch, extents.channels, by_packs, at[taps],
                at[dy],         at[dx]};
          },
          program);
    };
    WithPacks(type, extents.channels, add);
  });
}

}  // namespace

absl::Status Pool2D(const Node& node, CudaProgramBuilder& program) {
  const auto& op = static_cast<const Pool2DOp&>(*node.op);
  const Shape x = program.shape(node.inputs[0]);
  const ComputeDtype kept = program.stored_dtype(node);
  const PoolExtents extents(op.window, x);
  const PoolTensors pool = {.x = program.tensor(node.inputs[0], kept),
                            .y = program.Output(node.outputs[0], kept)};
  if (op.kind == Pool2DOp::Kind::kMax) {
    AddMaxPool2D(node, extents, kept, pool, program);
    return absl::OkStatus();
  }
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    TensorList tensors;
    const auto in = tensors.Add<Element>(pool.x), out = tensors.Add<Element>(pool.y);
    AddKernel(
        node, std::move(tensors).Take(),
        [=, by_packs = extents.by_packs(width)](const StepTensors& at) {
          return AveragePool2DKernel<Element, width>{
              extents.window, extents.batch, extents.channels, by_packs, at[in], at[out]};
        },
        program);
  };
  WithPacks(kept, x[3], add);
  return absl::OkStatus();
}

absl::Status Pool2DBackward(const Node& node, CudaProgramBuilder& program) {
  const auto& op = static_cast<const Pool2DBackwardOp&>(*node.op);
  const Shape x = program.shape(node.inputs[0]);
  const ComputeDtype kept = program.stored_dtype(node);
  const PoolExtents extents(op.window, x);
  const TensorId dy = program.tensor(node.inputs[2], kept);
  const TensorId dx = program.Output(node.outputs[0], kept);
  if (op.kind == Pool2DOp::Kind::kMax) {
    AddMaxPool2DBackward(node, extents, kept,
                         {.taps = program.taps_of(node.inputs[1]), .dy = dy, .dx = dx}, program);
    return absl::OkStatus();
  }
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    TensorList tensors;
    const auto of_dy = tensors.Add<Element>(dy), out = tensors.Add<Element>(dx);
    AddKernel(
        node, std::move(tensors).Take(),
        [=, by_packs = extents.by_packs(width)](const StepTensors& at) {
          return AveragePool2DBackwardKernel<Element, width>{
              extents.window, extents.batch, extents.channels, by_packs, at[of_dy], at[out]};
        },
        program);
  };
  WithPacks(kept, x[3], add);
  return absl::OkStatus();
}

absl::Status GlobalAveragePool2D(const Node& node, CudaProgramBuilder& program) {
  const Shape x = program.shape(node.inputs[0]);
  const ComputeDtype kept = program.stored_dtype(node);
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    TensorList tensors;
    const auto in = tensors.Add<Element>(program.tensor(node.inputs[0], kept));
    const auto out = tensors.Add<Element>(program.Output(node.outputs[0], kept));
    AddKernel(
        node, std::move(tensors).Take(),
        [=, batch = x[0], pixels = static_cast<int32_t>(x[1] * x[2]),
         channels = static_cast<int32_t>(x[3])](const StepTensors& at) {
          return GlobalAveragePool2DKernel<Element, width>{batch, pixels, channels, at[in],
                                                           at[out]};
        },
        program);
  };
  WithPacks(kept, x[3], add);
  return absl::OkStatus();
}

absl::Status GlobalAveragePool2DBackward(const Node& node, CudaProgramBuilder& program) {
  const Shape x = program.shape(node.outputs[0]);
  const ComputeDtype kept = program.stored_dtype(node);
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    TensorList tensors;
    const auto dy = tensors.Add<Element>(program.tensor(node.inputs[0], kept));
    const auto dx = tensors.Add<Element>(program.Output(node.outputs[0], kept));
    AddKernel(
        node, std::move(tensors).Take(),
        [=, batch = x[0], pixels = static_cast<int32_t>(x[1] * x[2]),
         channels = static_cast<int32_t>(x[3])](const StepTensors& at) {
          return GlobalAveragePool2DBackwardKernel<Element, width>{batch, pixels, channels, at[dy],
                                                                   at[dx]};
        },
        program);
  };
  WithPacks(kept, x[3], add);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
