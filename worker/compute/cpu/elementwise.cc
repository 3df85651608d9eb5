#include "worker/compute/cpu/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "worker/compute/activation_functions.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/dropout_mask.h"

namespace shoal::cpu {
namespace {

using dnnl::memory;

// Not-a-number fails every comparison: written so, it stays what it is, and a ruined model shows.
inline float Relu(float x, float max_value) {
  const float positive = 0 > x ? 0 : x;
  return max_value < positive ? max_value : positive;
}

SHOAL_VECTORIZED void ReluLoop(const float* x, float max_value, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = Relu(x[i], max_value);
}

SHOAL_VECTORIZED void ReluInPlaceLoop(float max_value, int64_t count, float* x) {
  for (int64_t i = 0; i < count; ++i) x[i] = Relu(x[i], max_value);
}

SHOAL_VECTORIZED void ReluBackwardLoop(const float* y, const float* dy, float max_value,
                                       int64_t count, float* dx) {
  for (int64_t i = 0; i < count; ++i) {
    dx[i] = dy[i] * (((y[i] <= 0) | (y[i] >= max_value)) ? 0.0f : 1.0f);
  }
}

SHOAL_VECTORIZED void KeepNotANumberLoop(const float* x, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] != x[i] ? x[i] : y[i];
}

SHOAL_VECTORIZED void SumLoop(const float* a, const float* b, int64_t count, float* sum) {
  for (int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

SHOAL_VECTORIZED void DropoutLoop(DropoutMask mask, const float* x, int64_t begin, int64_t end,
                                  float* y) {
  for (int64_t i = begin; i < end; ++i) y[i] = x[i] * mask.Factor<float>(i);
}

SHOAL_VECTORIZED void RescaleLoop(const float* x, const float* scale, const float* offset,
                                  int64_t pixels, int64_t channels, float* y) {
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t c = 0; c < channels; ++c) {
      y[p * channels + c] = x[p * channels + c] * scale[c] + offset[c];
    }
  }
}

// Tensors of one layout: the inputs of an elementwise op, then its output.
struct Operands {
  std::vector<TensorId> tensors;
  memory::desc desc;
  int64_t count = 0;  // floats, padding included
};

// Brings the inputs into the layout of the first that is not row-major. `zeros_stay` tells whether
// the op makes zero of zeros, which is what the padding of a layout must hold; other ops run
// row-major when there is padding.
Operands AlignOperands(const std::vector<ValueId>& inputs, ValueId output, bool zeros_stay,
                       CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const int64_t elements = ElementCount(builder.shape(output));
  Operands result;
  for (const ValueId input : inputs) {
    if (builder.tensor_info(builder.tensor(input)).layout == nullptr) continue;
    const memory::desc desc = program.ImageDesc(input);
    const int64_t floats = desc.get_size() / sizeof(float);
    if (!zeros_stay && floats != elements) continue;
    for (const ValueId other : inputs) result.tensors.push_back(program.ImageIn(other, desc));
    result.tensors.push_back(program.ImageOutput(output, desc));
    result.desc = desc;
    result.count = floats;
    return result;
  }
  for (const ValueId input : inputs) result.tensors.push_back(program.RowMajor(input));
  result.tensors.push_back(builder.Output(output));
  result.desc = memory::desc({elements}, memory::data_type::f32, memory::format_tag::x);
  result.count = elements;
  return result;
}

// What the result of a ReLU is at most; not-a-number, which bounds nothing, where it has no bound.
float UpperBound(const ActivationAttributes& attributes) {
  return attributes.max_value < 0 ? std::numeric_limits<float>::quiet_NaN()
                                  : static_cast<float>(attributes.max_value);
}

// oneDNN's name for an activation, where it has one that computes the same.
struct Eltwise {
  dnnl::algorithm algorithm;
  float alpha = 0;
};
std::optional<Eltwise> FindEltwise(const ActivationAttributes& attributes) {
  using Kind = ActivationAttributes::Kind;
  const float slope = static_cast<float>(attributes.negative_slope);
  switch (attributes.kind) {
    case Kind::kLeakyRelu:
      return Eltwise{dnnl::algorithm::eltwise_relu, slope};
    case Kind::kTanh:
      return Eltwise{dnnl::algorithm::eltwise_tanh};
    case Kind::kSigmoid:
      return Eltwise{dnnl::algorithm::eltwise_logistic};
    case Kind::kElu:
      return Eltwise{dnnl::algorithm::eltwise_elu, slope};
    case Kind::kSoftplus:
      return Eltwise{dnnl::algorithm::eltwise_soft_relu};
    case Kind::kSilu:
      return Eltwise{dnnl::algorithm::eltwise_swish, 1};
    case Kind::kGelu:
      return Eltwise{dnnl::algorithm::eltwise_gelu_erf};
    case Kind::kExponential:
      return Eltwise{dnnl::algorithm::eltwise_exp};
    default:
      return std::nullopt;
  }
}

// Whether oneDNN makes numbers of not-a-number (of one with its sign set, as x86 makes them).
bool LosesNotANumber(const Eltwise& eltwise) {
  return eltwise.algorithm == dnnl::algorithm::eltwise_logistic ||
         eltwise.algorithm == dnnl::algorithm::eltwise_exp;
}

dnnl::eltwise_forward::primitive_desc EltwiseForward(const Eltwise& eltwise,
                                                     const memory::desc& desc,
                                                     const CpuProgram& program) {
  return {{dnnl::prop_kind::forward_training, eltwise.algorithm, desc, eltwise.alpha, 0.0f},
          CpuProgram::Attributes(),
          program.engine()};
}

absl::Status Activation(int index, CpuProgram& program) {
  const Node& node = program.graph().nodes()[index];
  const ActivationAttributes attributes = static_cast<const ActivationOp&>(*node.op).attributes;
  const std::optional<Eltwise> eltwise = FindEltwise(attributes);
  const bool zeros_stay = eltwise.has_value() || Activate(attributes, 0.0f) == 0;
  const Operands operands = AlignOperands({node.inputs[0]}, node.outputs[0], zeros_stay, program);
  if (eltwise.has_value()) {
    const auto pd = EltwiseForward(*eltwise, operands.desc, program);
    program.AddPrimitive(dnnl::eltwise_forward(pd), pd.scratchpad_desc(),
                         {{DNNL_ARG_SRC, operands.tensors[0], operands.desc},
                          {DNNL_ARG_DST, operands.tensors[1], operands.desc}});
    if (!LosesNotANumber(*eltwise)) return absl::OkStatus();
    AddLoopStep(
        operands.count, kElementGrain, operands.tensors,
        [](const RunContext&, float* const* data, int64_t begin, int64_t end) {
          KeepNotANumberLoop(data[0] + begin, end - begin, data[1] + begin);
        },
        program);
    return absl::OkStatus();
  }
  const auto run = [attributes](const RunContext&, float* const* data, int64_t begin, int64_t end) {
    if (IsPlainRelu(attributes)) {
      ReluLoop(data[0] + begin, UpperBound(attributes), end - begin, data[1] + begin);
      return;
    }
    for (int64_t i = begin; i < end; ++i) data[1][i] = Activate(attributes, data[0][i]);
  };
  AddLoopStep(operands.count, kElementGrain, operands.tensors, run, program);
  return absl::OkStatus();
}

absl::Status ActivationBackward(int index, CpuProgram& program) {
  const Node& node = program.graph().nodes()[index];
  const ActivationAttributes attributes =
      static_cast<const ActivationBackwardOp&>(*node.op).attributes;
  const ValueId x = node.inputs[0], y = node.inputs[1], dy = node.inputs[2];
  if (IsPlainRelu(attributes)) {
    // x may never have been in memory: the layer before it computes y at once (fusions.h).
    const Operands operands = AlignOperands({dy, y}, node.outputs[0], true, program);
    AddLoopStep(
        operands.count, kElementGrain, operands.tensors,
        [attributes](const RunContext&, float* const* data, int64_t begin, int64_t end) {
          ReluBackwardLoop(data[1] + begin, data[0] + begin, UpperBound(attributes), end - begin,
                           data[2] + begin);
        },
        program);
    return absl::OkStatus();
  }
  if (const std::optional<Eltwise> eltwise = FindEltwise(attributes)) {
    const Operands operands = AlignOperands({dy, x}, node.outputs[0], true, program);
    const dnnl::eltwise_backward::primitive_desc pd(
        {eltwise->algorithm, operands.desc, operands.desc, eltwise->alpha, 0.0f},
        CpuProgram::Attributes(), program.engine(),
        EltwiseForward(*eltwise, operands.desc, program));
    program.AddPrimitive(dnnl::eltwise_backward(pd), pd.scratchpad_desc(),
                         {{DNNL_ARG_DIFF_DST, operands.tensors[0], operands.desc},
                          {DNNL_ARG_SRC, operands.tensors[1], operands.desc},
                          {DNNL_ARG_DIFF_SRC, operands.tensors[2], operands.desc}});
    return absl::OkStatus();
  }
  const Operands operands = AlignOperands({dy, x, y}, node.outputs[0], true, program);
  AddLoopStep(
      operands.count, kElementGrain, operands.tensors,
      [attributes](const RunContext&, float* const* data, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          data[3][i] = data[0][i] * ActivationDerivative(attributes, data[1][i], data[2][i]);
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status Reshape(int index, CpuProgram& program) {
  const Node& node = program.graph().nodes()[index];
  program.builder().Bind(node.outputs[0], program.RowMajor(node.inputs[0]));
  return absl::OkStatus();
}

// The rows that are left of each image, one after the other.
absl::Status Crop(int index, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Node& node = program.graph().nodes()[index];
  const Shape from = builder.shape(node.inputs[0]), to = builder.shape(node.outputs[0]);
  AddLoopStep(
      to[0] * to[1], std::max<int64_t>(1, kElementGrain / (to[2] * to[3])),
      {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [from, to](const RunContext&, float* const* data, int64_t begin, int64_t end) {
        const int64_t from_row = from[2] * from[3], to_row = to[2] * to[3];
        for (int64_t row = begin; row < end; ++row) {
          const int64_t source = row / to[1] * from[1] + row % to[1];
          std::copy_n(data[0] + source * from_row, to_row, data[1] + row * to_row);
        }
      },
      program);
  return absl::OkStatus();
}

// The mask goes by the position in the row-major tensor. Backward is the same product.
void AddDropoutStep(const Node& node, double rate, uint64_t layer_seed, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const TensorId x = program.RowMajor(node.inputs[0]);
  if (!builder.dropout()) {
    builder.Bind(node.outputs[0], x);
    return;
  }
  const TensorId y = builder.Output(node.outputs[0]);
  AddLoopStep(
      ElementCount(builder.shape(node.outputs[0])), kElementGrain, {x, y},
      [rate, layer_seed](const RunContext& context, float* const* data, int64_t begin,
                         int64_t end) {
        DropoutLoop(DropoutMask(context.job_seed, context.step, layer_seed, rate), data[0], begin,
                    end, data[1]);
      },
      program);
}

absl::Status Dropout(int index, CpuProgram& program) {
  const Node& node = program.graph().nodes()[index];
  const auto& op = static_cast<const DropoutOp&>(*node.op);
  AddDropoutStep(node, op.rate, op.layer_seed, program);
  return absl::OkStatus();
}

absl::Status DropoutBackward(int index, CpuProgram& program) {
  const Node& node = program.graph().nodes()[index];
  const auto& op = static_cast<const DropoutBackwardOp&>(*node.op);
  AddDropoutStep(node, op.rate, op.layer_seed, program);
  return absl::OkStatus();
}

absl::Status Rescale(int index, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Node& node = program.graph().nodes()[index];
  const auto& op = static_cast<const RescaleOp&>(*node.op);
  const Shape shape = builder.shape(node.outputs[0]);
  // One factor for all is the same as equal ones for rows of any length.
  const int64_t elements = ElementCount(shape);
  const bool per_channel = op.scale.size() > 1 || op.offset.size() > 1;
  const int64_t channels = per_channel ? shape.back() : std::min<int64_t>(elements, 64);
  std::vector<float> scale(channels), offset(channels);
  for (int64_t c = 0; c < channels; ++c) {
    scale[c] = static_cast<float>(op.scale[op.scale.size() == 1 ? 0 : c]);
    offset[c] = static_cast<float>(op.offset[op.offset.size() == 1 ? 0 : c]);
  }
  AddLoopStep(
      elements, kElementGrain, {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [scale, offset, channels, elements](const RunContext&, float* const* data, int64_t begin,
                                          int64_t end) {
        // Whole rows, then what is left of them at the end.
        begin = begin / channels * channels;
        end = end == elements ? end : end / channels * channels;
        const int64_t rows = (end - begin) / channels;
        RescaleLoop(data[0] + begin, scale.data(), offset.data(), rows, channels, data[1] + begin);
        begin += rows * channels;
        RescaleLoop(data[0] + begin, scale.data(), offset.data(), 1, end - begin, data[1] + begin);
      },
      program);
  return absl::OkStatus();
}

absl::Status Add(int index, CpuProgram& program) {
  const Node& node = program.graph().nodes()[index];
  const Operands operands = AlignOperands(node.inputs, node.outputs[0], true, program);
  AddLoopStep(
      operands.count, kElementGrain, operands.tensors,
      [inputs = node.inputs.size()](const RunContext&, float* const* data, int64_t begin,
                                    int64_t end) {
        float* sum = data[inputs] + begin;
        SumLoop(data[0] + begin, data[1] + begin, end - begin, sum);
        for (size_t i = 2; i < inputs; ++i) SumLoop(sum, data[i] + begin, end - begin, sum);
      },
      program);
  return absl::OkStatus();
}

}  // namespace

ValueId FusedOutput(int index, const CpuProgram& program) {
  const int relu = program.fusions().relu[index];
  return program.graph().nodes()[relu >= 0 ? relu : index].outputs[0];
}

void AddFusedRelu(int index, TensorId y, int64_t size_bytes, CpuProgram& program) {
  const int relu = program.fusions().relu[index];
  if (relu < 0) return;
  const auto& op = static_cast<const ActivationOp&>(*program.graph().nodes()[relu].op);
  AddLoopStep(
      size_bytes / static_cast<int64_t>(sizeof(float)), kElementGrain, {y},
      [max_value = UpperBound(op.attributes)](const RunContext&, float* const* data, int64_t begin,
                                              int64_t end) {
        ReluInPlaceLoop(max_value, end - begin, data[0] + begin);
      },
      program);
}

TensorId AddReluBackward(const ActivationAttributes& attributes, TensorId y, TensorId dy,
                         int64_t size_bytes, CpuProgram& program) {
  const TensorId dx = program.builder().AddTensor(size_bytes);
  AddLoopStep(
      size_bytes / static_cast<int64_t>(sizeof(float)), kElementGrain, {y, dy, dx},
      [max_value = UpperBound(attributes)](const RunContext&, float* const* data, int64_t begin,
                                           int64_t end) {
        ReluBackwardLoop(data[0] + begin, data[1] + begin, max_value, end - begin, data[2] + begin);
      },
      program);
  return dx;
}

void AddElementwiseFactories(StepFactories& factories) {
  factories["Reshape"] = Reshape;
  factories["Crop"] = Crop;
  factories["Dropout"] = Dropout;
  factories["DropoutBackward"] = DropoutBackward;
  factories["Activation"] = Activation;
  factories["ActivationBackward"] = ActivationBackward;
  factories["Rescale"] = Rescale;
  factories["Add"] = Add;
}

}  // namespace shoal::cpu
