#include "worker/compute/cpu/conv2d.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/model/ops/conv2d.h"
#include "worker/compute/cpu/activation.h"
#include "worker/compute/cpu/cpu_program_builder.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/plan/fused_ops.h"

namespace shoal::cpu {
namespace {

using dnnl::memory;

// A convolution in oneDNN's terms.
struct ConvolutionGeometry {
  // Computes with elements of `type`.
  ConvolutionGeometry(const Convolution& convolution, const Shape& x, const Shape& y,
                      ComputeDtype type);

  memory::dims strides, dilates, padding_before, padding_after;
  memory::desc x, y;              // any layout
  memory::desc kernel;            // any layout
  memory::desc kernel_canonical;  // Keras's [kh, kw, C / groups, F], in float32
  memory::desc bias;              // in float32
};

ConvolutionGeometry::ConvolutionGeometry(const Convolution& convolution, const Shape& x_shape,
                                         const Shape& y_shape, ComputeDtype type)
    : strides{convolution.window.strides[0], convolution.window.strides[1]},
      dilates{convolution.window.dilation[0] - 1, convolution.window.dilation[1] - 1},
      x(CpuProgramBuilder::AnyImage(x_shape, type)),
      y(CpuProgramBuilder::AnyImage(y_shape, type)),
      bias({y_shape[3]}, memory::data_type::f32, memory::format_tag::x) {
  const Window& window = convolution.window;
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t in = x_shape[1 + axis], out = y_shape[1 + axis];
    const int64_t reach = (window.size[axis] - 1) * window.dilation[axis] + 1;
    padding_before.push_back(window.PaddingBefore(axis, in));
    padding_after.push_back(std::max<int64_t>(
        0, (out - 1) * window.strides[axis] + reach - in - padding_before.back()));
  }
  const Shape& kernel_shape = convolution.kernel;
  const int64_t groups = convolution.groups;
  const int64_t height = kernel_shape[0], width = kernel_shape[1];
  const int64_t in = kernel_shape[2], filters = kernel_shape[3];
  memory::dims dims = {filters / groups, in, height, width};
  memory::dims canonical = {1, filters, width * in * filters, in * filters};
  if (groups > 1) {
    dims.insert(dims.begin(), groups);
    canonical.insert(canonical.begin(), filters / groups);
  }
  kernel = memory::desc(dims, CpuProgramBuilder::DataTypeOf(type), memory::format_tag::any);
  kernel_canonical = memory::desc(dims, memory::data_type::f32, canonical);
}

dnnl::convolution_forward::primitive_desc Forward(const ConvolutionGeometry& g, bool bias,
                                                  const dnnl::engine& engine) {
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, g.x, g.kernel,
      bias ? g.bias : memory::desc(), g.y, g.strides, g.dilates, g.padding_before, g.padding_after);
  return {desc, CpuProgramBuilder::Attributes(), engine};
}

// Returns choose(type), which is a geometry and a primitive_desc. Returns choose(kFloat32) if
// oneDNN has only its slow reference for `type`, as for images with few channels.
template <typename Choose>
auto WithFastType(ComputeDtype type, const Choose& choose) {
  if (type != ComputeDtype::kFloat32) {
    auto chosen = choose(type);
    if (!absl::StartsWith(chosen.second.impl_info_str(), "ref")) return chosen;
  }
  return choose(ComputeDtype::kFloat32);
}

SHOAL_VECTORIZED void ScaleRows(const float* x, const float* factor, int64_t rows, int64_t columns,
                                float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t c = 0; c < columns; ++c) y[row * columns + c] = x[row * columns + c] * factor[c];
  }
}

// Row-major, in float32.
struct ConvolutionVariables {
  TensorId kernel = -1;
  TensorId bias = -1;  // -1: none
};

// Adds steps that scale the kernel and move the bias as the normalization does.
ConvolutionVariables FoldedVariables(const Node& node, const FoldedNormalization& folded,
                                     CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const Shape kernel_shape = builder.shape(node.inputs[1]);
  const int64_t filters = builder.shape(node.outputs[0])[3];
  const int64_t rows = ElementCount(kernel_shape) / filters;
  const int64_t row_bytes = filters * SizeOf(ComputeDtype::kFloat32);
  const TensorId kernel = builder.AddTensor(rows * row_bytes), bias = builder.AddTensor(row_bytes);
  const TensorId factor = builder.AddTensor(row_bytes);
  std::vector<TensorId> tensors = {factor, bias, program.RowMajor(node.inputs[folded.mean()]),
                                   program.RowMajor(node.inputs[folded.variance()])};
  // The place of an input among the tensors; 0: it is not there.
  const auto place = [&](int input) {
    if (input < 0) return 0;
    tensors.push_back(program.RowMajor(node.inputs[input]));
    return static_cast<int>(tensors.size()) - 1;
  };
  const int old_bias = place(folded.bias()), gamma = place(folded.gamma());
  const int beta = place(folded.beta());
  AddLoopStep(
      filters, kElementGrain, std::move(tensors),
      [=, epsilon = folded.normalization.epsilon](const RunContext&, const LoopTensors& data,
                                                  int64_t begin, int64_t end) {
        for (int64_t f = begin; f < end; ++f) {
          data[0][f] = static_cast<float>((gamma == 0 ? 1 : data[gamma][f]) /
                                          std::sqrt(data[3][f] + epsilon));
          data[1][f] = (beta == 0 ? 0 : data[beta][f]) +
                       ((old_bias == 0 ? 0 : data[old_bias][f]) - data[2][f]) * data[0][f];
        }
      },
      program);
  AddLoopStep(
      rows, std::max<int64_t>(1, kElementGrain / filters),
      {program.RowMajor(node.inputs[1]), factor, kernel},
      [filters](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        ScaleRows(data[0] + begin * filters, data[1], end - begin, filters,
                  data[2] + begin * filters);
      },
      program);
  return {kernel, bias};
}

ConvolutionVariables VariablesOf(const Node& node, CpuProgramBuilder& program) {
  const auto* folded = dynamic_cast<const FoldedNormalization*>(node.op.get());
  if (folded != nullptr) return FoldedVariables(node, *folded, program);
  return {program.RowMajor(node.inputs[1]),
          node.inputs.size() == 3 ? program.RowMajor(node.inputs[2]) : -1};
}

}  // namespace

absl::Status AddConvolution(const Node& node, const Convolution& convolution,
                            CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const ConvolutionVariables variables = VariablesOf(node, program);
  const bool bias = variables.bias >= 0;
  const auto [geometry, pd] = WithFastType(program.stored_dtype(node), [&](ComputeDtype type) {
    const ConvolutionGeometry geometry(convolution, builder.shape(node.inputs[0]),
                                       builder.shape(node.outputs[0]), type);
    return std::pair(geometry, Forward(geometry, bias, program.engine()));
  });
  const TensorId y = program.ImageOutput(node.outputs[0], pd.dst_desc());
  std::vector<CpuProgramBuilder::Argument> arguments = {
      {DNNL_ARG_SRC, program.ImageIn(node.inputs[0], pd.src_desc()), pd.src_desc()},
      {DNNL_ARG_WEIGHTS,
       program.Reordered(variables.kernel, geometry.kernel_canonical, pd.weights_desc()),
       pd.weights_desc()},
      {DNNL_ARG_DST, y, pd.dst_desc()}};
  if (bias) arguments.push_back({DNNL_ARG_BIAS, variables.bias, pd.bias_desc()});
  program.AddPrimitive(dnnl::convolution_forward(pd), pd.scratchpad_desc(), std::move(arguments));
  AddFusedRelu(node, y, pd.dst_desc().get_size(), program);
  return absl::OkStatus();
}

absl::Status AddConvolutionBackwardData(const Node& node, const Convolution& convolution,
                                        CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto [geometry, pd] = WithFastType(program.stored_dtype(node), [&](ComputeDtype type) {
    const ConvolutionGeometry geometry(convolution, builder.shape(node.outputs[0]),
                                       builder.shape(node.inputs[0]), type);
    const dnnl::convolution_backward_data::desc desc(
        dnnl::algorithm::convolution_direct, geometry.x, geometry.kernel, geometry.y,
        geometry.strides, geometry.dilates, geometry.padding_before, geometry.padding_after);
    const dnnl::convolution_backward_data::primitive_desc pd(
        desc, CpuProgramBuilder::Attributes(), program.engine(),
        Forward(geometry, false, program.engine()));
    return std::pair(geometry, pd);
  });
  const TensorId kernel = program.Reordered(program.RowMajor(node.inputs[1]),
                                            geometry.kernel_canonical, pd.weights_desc());
  program.AddPrimitive(
      dnnl::convolution_backward_data(pd), pd.scratchpad_desc(),
      {{DNNL_ARG_DIFF_DST, program.ImageIn(node.inputs[0], pd.diff_dst_desc()), pd.diff_dst_desc()},
       {DNNL_ARG_WEIGHTS, kernel, pd.weights_desc()},
       {DNNL_ARG_DIFF_SRC, program.ImageOutput(node.outputs[0], pd.diff_src_desc()),
        pd.diff_src_desc()}});
  return absl::OkStatus();
}

absl::Status AddConvolutionBackwardWeights(const Node& node, const Convolution& convolution,
                                           CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const bool bias = node.outputs.size() == 2;
  const auto [geometry, pd] = WithFastType(node.compute_dtype, [&](ComputeDtype type) {
    const ConvolutionGeometry geometry(convolution, builder.shape(node.inputs[0]),
                                       builder.shape(node.inputs[1]), type);
    const dnnl::convolution_backward_weights::desc desc(
        dnnl::algorithm::convolution_direct, geometry.x,
        CpuProgramBuilder::WithType(geometry.kernel, ComputeDtype::kFloat32),
        bias ? geometry.bias : memory::desc(), geometry.y, geometry.strides, geometry.dilates,
        geometry.padding_before, geometry.padding_after);
    const dnnl::convolution_backward_weights::primitive_desc pd(
        desc, CpuProgramBuilder::Attributes(), program.engine(),
        Forward(geometry, bias, program.engine()));
    return std::pair(geometry, pd);
  });
  const memory::desc gradient_desc = pd.diff_weights_desc();
  const bool canonical = gradient_desc == geometry.kernel_canonical;
  const TensorId output = builder.Output(node.outputs[0]);
  const TensorId computed = canonical ? output : builder.AddTensor(gradient_desc.get_size());
  std::vector<CpuProgramBuilder::Argument> arguments = {
      {DNNL_ARG_SRC, program.ImageIn(node.inputs[0], pd.src_desc()), pd.src_desc()},
      {DNNL_ARG_DIFF_DST, program.ImageIn(node.inputs[1], pd.diff_dst_desc()), pd.diff_dst_desc()},
      {DNNL_ARG_DIFF_WEIGHTS, computed, gradient_desc}};
  if (bias) {
    arguments.push_back({DNNL_ARG_DIFF_BIAS, builder.Output(node.outputs[1]), pd.diff_bias_desc()});
  }
  program.AddPrimitive(dnnl::convolution_backward_weights(pd), pd.scratchpad_desc(),
                       std::move(arguments));
  if (!canonical) {
    program.AddReorder(computed, gradient_desc, output, geometry.kernel_canonical);
  }
  return absl::OkStatus();
}

absl::Status Conv2D(const Node& node, CpuProgramBuilder& program) {
  const auto& op = static_cast<const Conv2DOp&>(*node.op);
  return AddConvolution(node, {op.window, op.groups, program.builder().shape(node.inputs[1])},
                        program);
}

absl::Status Conv2DBackwardData(const Node& node, CpuProgramBuilder& program) {
  const auto& op = static_cast<const Conv2DBackwardDataOp&>(*node.op);
  return AddConvolutionBackwardData(
      node, {op.window, op.groups, program.builder().shape(node.inputs[1])}, program);
}

absl::Status Conv2DBackwardWeights(const Node& node, CpuProgramBuilder& program) {
  const auto& op = static_cast<const Conv2DBackwardWeightsOp&>(*node.op);
  return AddConvolutionBackwardWeights(node, {op.window, op.groups, op.kernel_shape}, program);
}

}  // namespace shoal::cpu
