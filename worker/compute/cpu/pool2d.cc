#include "common/model/ops/pool2d.h"

#include <algorithm>
#include <memory>

#include "common/base/check.h"
#include "worker/compute/cpu/activation.h"
#include "worker/compute/cpu/cpu_program_builder.h"
#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/image_blocks.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/plan/fusion.h"

namespace shoal::cpu {
namespace {

using dnnl::memory;

// A sliding window in oneDNN's terms.
struct PoolGeometry {
  PoolGeometry(const Window& window, const Shape& x, const Shape& y) {
    for (int axis = 0; axis < 2; ++axis) {
      const int64_t reach = (window.size[axis] - 1) * window.dilation[axis] + 1;
      kernel.push_back(window.size[axis]);
      strides.push_back(window.strides[axis]);
      dilation.push_back(window.dilation[axis] - 1);
      before.push_back(window.PaddingBefore(axis, x[1 + axis]));
      after.push_back(std::max<int64_t>(
          0, (y[1 + axis] - 1) * window.strides[axis] + reach - x[1 + axis] - before.back()));
    }
  }
  memory::dims kernel, strides, dilation, before, after;
};

dnnl::algorithm Algorithm(Pool2DOp::Kind kind) {
  return kind == Pool2DOp::Kind::kMax ? dnnl::algorithm::pooling_max
                                      : dnnl::algorithm::pooling_avg_exclude_padding;
}

dnnl::pooling_v2_forward::primitive_desc Forward(const CpuProgramBuilder& program,
                                                 bool for_training, Pool2DOp::Kind kind,
                                                 const PoolGeometry& geometry,
                                                 const memory::desc& x, const memory::desc& y) {
  const dnnl::pooling_v2_forward::desc desc(
      for_training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
      Algorithm(kind), x, y, geometry.strides, geometry.kernel, geometry.dilation, geometry.before,
      geometry.after);
  return {desc, CpuProgramBuilder::Attributes(), program.engine()};
}

// Computes with elements of the type of `forward`.
dnnl::pooling_v2_backward::primitive_desc Backward(
    const CpuProgramBuilder& program, Pool2DOp::Kind kind, const PoolGeometry& geometry,
    const Shape& x, const Shape& y, const dnnl::pooling_v2_forward::primitive_desc& forward) {
  const ComputeDtype type = CpuProgramBuilder::DtypeOf(forward.dst_desc());
  const dnnl::pooling_v2_backward::desc desc(
      Algorithm(kind), CpuProgramBuilder::AnyImage(x, type), CpuProgramBuilder::AnyImage(y, type),
      geometry.strides, geometry.kernel, geometry.dilation, geometry.before, geometry.after);
  return {desc, CpuProgramBuilder::Attributes(), program.engine(), forward};
}

// Whether a node of the program needs the pooling's workspace for a gradient.
bool HasGradient(CpuProgramBuilder& program, ValueId pooled) {
  const Plan& plan = program.builder().plan();
  const std::vector<int>& consumers = plan.consumers(pooled);
  return std::any_of(consumers.begin(), consumers.end(), [&](int consumer) {
    return OpAt<Pool2DBackwardOp>(plan, consumer) != nullptr &&
           plan.nodes()[consumer].inputs[1] == pooled;
  });
}

// The window that covers a whole image.
Window WholeImage(const Shape& x) { return {.size = {x[1], x[2]}, .strides = {x[1], x[2]}}; }

Shape PooledShape(const Shape& x) { return {x[0], 1, 1, x[3]}; }

// Returns the image that the forward node averages.
ValueId AveragedImage(const Node& node, CpuProgramBuilder& program) {
  const Plan& plan = program.builder().plan();
  const int averaged = plan.FindNode(node.gradient_of);
  SHOAL_CHECK(averaged >= 0, "layer ", node.layer);
  return plan.nodes()[averaged].inputs[0];
}

// Spreads an average's gradient over the pixels of its image. A row of the image has `pixels` times
// the same `width` channels.
struct SpreadRows {
  int64_t channels;          // of the image; further ones of the last block are padding
  int64_t width;             // channels of a row
  int64_t pixels;            // of a row
  int64_t rows_of_channels;  // rows that have the same channels, one after the other
  int64_t pixels_of_image;

  // Writes row number `row` of dx. `dy` is row-major.
  template <typename Element>
  void Fill(const Element* dy, int64_t row, Element* dx) const {
    const int64_t blocks = (channels + width - 1) / width;
    const int64_t at = row / rows_of_channels;
    const int64_t first = at % blocks * width, image = at / blocks;
    const int64_t kept = std::min(width, channels - first);
    const Element* const from = dy + image * channels + first;
    Element* const to = dx + row * pixels * width;
    for (int64_t c = 0; c < kept; ++c) {
      to[c] = FromFloat<Element>(ToFloat(from[c]) / static_cast<float>(pixels_of_image));
    }
    std::fill(to + kept, to + width, Element());
    for (int64_t pixel = 1; pixel < pixels; ++pixel) std::copy_n(to, width, to + pixel * width);
  }
};

}  // namespace

absl::Status Pool2D(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto& op = static_cast<const Pool2DOp&>(*node.op);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const PoolGeometry geometry(op.window, builder.shape(x), builder.shape(y));
  const ComputeDtype type = program.stored_dtype(node);
  const auto pd = Forward(program, HasGradient(program, y), op.kind, geometry,
                          CpuProgramBuilder::WithType(program.ImageDesc(x), type),
                          CpuProgramBuilder::AnyImage(builder.shape(y), type));
  std::vector<CpuProgramBuilder::Argument> arguments = {
      {DNNL_ARG_SRC, program.ImageIn(x, pd.src_desc()), pd.src_desc()},
      {DNNL_ARG_DST, program.ImageOutput(y, pd.dst_desc()), pd.dst_desc()}};
  CpuProgramBuilder::Pooling pooling = {.forward = pd};
  if (pd.workspace_desc().get_size() > 0) {
    pooling.workspace = builder.AddTensor(pd.workspace_desc().get_size());
    arguments.push_back({DNNL_ARG_WORKSPACE, pooling.workspace, pd.workspace_desc()});
  }
  program.poolings().emplace(y, pooling);
  program.AddPrimitive(dnnl::pooling_v2_forward(pd), pd.scratchpad_desc(), std::move(arguments));
  return absl::OkStatus();
}

absl::Status Pool2DBackward(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto& op = static_cast<const Pool2DBackwardOp&>(*node.op);
  const ValueId y = node.inputs[1], dy = node.inputs[2];
  const auto* const fused = dynamic_cast<const MaxPool2DBackwardReluOp*>(&op);
  const ValueId dx = node.outputs[0];
  const CpuProgramBuilder::Pooling& pooling = program.poolings().at(y);
  const PoolGeometry geometry(op.window, builder.shape(dx), builder.shape(dy));
  const auto pd =
      Backward(program, op.kind, geometry, builder.shape(dx), builder.shape(dy), pooling.forward);
  TensorId pooled_gradient = program.ImageIn(dy, pd.diff_dst_desc());
  if (fused != nullptr) {
    const TensorId pooled = program.ImageIn(y, pd.diff_dst_desc());
    pooled_gradient = AddReluBackward(fused->relu, pooled, pooled_gradient,
                                      pd.diff_dst_desc().get_size(), program);
  }
  const memory::desc dx_desc = pd.diff_src_desc();
  // The caller reads float32.
  const bool converted = CpuProgramBuilder::DtypeOf(dx_desc) != ComputeDtype::kFloat32 &&
                         builder.plan().wanted_outside(dx);
  const TensorId computed =
      converted ? builder.AddTensor(dx_desc.get_size(), CpuProgramBuilder::DtypeOf(dx_desc))
                : program.ImageOutput(dx, dx_desc);
  std::vector<CpuProgramBuilder::Argument> arguments = {
      {DNNL_ARG_DIFF_DST, pooled_gradient, pd.diff_dst_desc()},
      {DNNL_ARG_DIFF_SRC, computed, dx_desc}};
  if (pooling.workspace >= 0) {
    arguments.push_back({DNNL_ARG_WORKSPACE, pooling.workspace, pd.workspace_desc()});
  }
  program.AddPrimitive(dnnl::pooling_v2_backward(pd), pd.scratchpad_desc(), std::move(arguments));
  if (converted) program.StoreRowMajor(dx, computed, dx_desc, ComputeDtype::kFloat32);
  return absl::OkStatus();
}

absl::Status GlobalAveragePool2D(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const Shape x_shape = builder.shape(node.inputs[0]);
  const Shape y_shape = PooledShape(x_shape);
  const ComputeDtype type = program.stored_dtype(node);
  const auto pd = Forward(program, false, Pool2DOp::Kind::kAverage,
                          PoolGeometry(WholeImage(x_shape), x_shape, y_shape),
                          CpuProgramBuilder::WithType(program.ImageDesc(node.inputs[0]), type),
                          CpuProgramBuilder::AnyImage(y_shape, type));
  const bool direct = pd.dst_desc() == CpuProgramBuilder::RowMajorImage(y_shape, type);
  const TensorId computed = direct ? builder.Output(node.outputs[0], type)
                                   : builder.AddTensor(pd.dst_desc().get_size(), type);
  program.AddPrimitive(
      dnnl::pooling_v2_forward(pd), pd.scratchpad_desc(),
      {{DNNL_ARG_SRC, program.ImageIn(node.inputs[0], pd.src_desc()), pd.src_desc()},
       {DNNL_ARG_DST, computed, pd.dst_desc()}});
  if (!direct) {
    program.AddReorder(computed, pd.dst_desc(), builder.Output(node.outputs[0], type),
                       CpuProgramBuilder::RowMajorImage(y_shape, type));
  }
  return absl::OkStatus();
}

// A loop of our own: for some layouts of a large image, oneDNN has plain loops only.
absl::Status GlobalAveragePool2DBackward(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const ValueId dy = node.inputs[0], dx = node.outputs[0];
  const Shape image = builder.shape(dx);
  const int64_t block = BlockFor({AveragedImage(node, program)}, dx, program);
  // Channels that lie together, for all pixels or for those of a row.
  const SpreadRows rows = {.channels = image[3],
                           .width = block > 0 ? block : image[3],
                           .pixels = block > 0 ? image[1] * image[2] : image[2],
                           .rows_of_channels = block > 0 ? 1 : image[1],
                           .pixels_of_image = image[1] * image[2]};
  const int64_t count = ElementCount(BlockedShape(image, block)) / (rows.width * rows.pixels);
  const ComputeDtype type = program.stored_dtype(node);
  WithElement(type, [&]<typename Element>(Element) {
    AddLoopStep(
        count, std::max<int64_t>(1, kElementGrain / (rows.width * rows.pixels)),
        {program.RowMajor(dy, type), OutInBlocks(dx, block, type, program)},
        [rows](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            rows.Fill(data.At<Element>(0), row, data.At<Element>(1));
          }
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cpu
