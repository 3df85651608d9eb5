#include "worker/compute/cpu/activation.h"

#include <limits>
#include <optional>

#include "worker/compute/cpu/activation_loops.h"
#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/operands.h"
#include "worker/compute/op_math/activation_functions.h"
#include "worker/compute/plan/plain_relu.h"

namespace shoal::cpu {
namespace {

using dnnl::memory;

// Not-a-number fails every comparison. In this form it passes through, so a broken model is
// visible.
inline float Relu(float x, float max_value) {
  const float positive = 0 > x ? 0 : x;
  return max_value < positive ? max_value : positive;
}

template <typename Element>
SHOAL_INLINE void ReluOf(const Element* x, float max_value, int64_t count, Element* y) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = FromFloat<Element>(Relu(ToFloat(x[i]), max_value));
}
SHOAL_VECTORIZED void ReluLoop(const float* x, float max_value, int64_t count, float* y) {
  ReluOf(x, max_value, count, y);
}
SHOAL_VECTORIZED void ReluLoop(const BFloat16* x, float max_value, int64_t count, BFloat16* y) {
  ReluOf(x, max_value, count, y);
}

template <typename Element>
SHOAL_INLINE void ReluBackwardOf(const Element* y, const Element* dy, float max_value,
                                 int64_t count, Element* dx) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float at = ToFloat(y[i]);
    dx[i] = FromFloat<Element>(ToFloat(dy[i]) * (((at <= 0) | (at >= max_value)) ? 0.0f : 1.0f));
  }
}
SHOAL_VECTORIZED void ReluBackwardLoop(const float* y, const float* dy, float max_value,
                                       int64_t count, float* dx) {
  ReluBackwardOf(y, dy, max_value, count, dx);
}
SHOAL_VECTORIZED void ReluBackwardLoop(const BFloat16* y, const BFloat16* dy, float max_value,
                                       int64_t count, BFloat16* dx) {
  ReluBackwardOf(y, dy, max_value, count, dx);
}

SHOAL_VECTORIZED void KeepNotANumberLoop(const float* x, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] != x[i] ? x[i] : y[i];
}
SHOAL_VECTORIZED void KeepNotANumberLoop(const BFloat16* x, int64_t count, BFloat16* y) {
  for (int64_t i = 0; i < count; ++i) {
    y[i].bits = (x[i].bits & 0x7fff) > 0x7f80 ? x[i].bits : y[i].bits;
  }
}

// oneDNN's equivalent of an activation, if it has one.
struct Eltwise {
  dnnl::algorithm algorithm;
  float alpha = 0;
};
std::optional<Eltwise> FindEltwise(const ActivationAttributes& attributes) {
  using Kind = ActivationAttributes::Kind;
  const float slope = static_cast<float>(attributes.negative_slope);
  switch (attributes.kind) {
    case Kind::kLeakyRelu:
      // With a slope of 0 it would turn not-a-number into 0.
      if (slope == 0) return std::nullopt;
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

// Whether oneDNN turns not-a-number into numbers (at least with the sign bit set, as x86 produces
// it).
bool LosesNotANumber(const Eltwise& eltwise) {
  return eltwise.algorithm == dnnl::algorithm::eltwise_logistic ||
         eltwise.algorithm == dnnl::algorithm::eltwise_exp;
}

dnnl::eltwise_forward::primitive_desc EltwiseForward(const Eltwise& eltwise,
                                                     const memory::desc& desc,
                                                     const CpuProgramBuilder& program) {
  return {{dnnl::prop_kind::forward_training, eltwise.algorithm, desc, eltwise.alpha, 0.0f},
          CpuProgramBuilder::Attributes(),
          program.engine()};
}

}  // namespace

absl::Status Activation(const Node& node, CpuProgramBuilder& program) {
  const ActivationAttributes attributes = static_cast<const ActivationOp&>(*node.op).attributes;
  const std::optional<Eltwise> eltwise = FindEltwise(attributes);
  const bool zeros_stay = Activate(attributes, 0.0f) == 0;
  const Operands operands = AlignOperands({node.inputs[0]}, node.outputs[0], zeros_stay,
                                          program.stored_dtype(node), program);
  if (eltwise.has_value()) {
    const auto pd = EltwiseForward(*eltwise, operands.desc, program);
    program.AddPrimitive(dnnl::eltwise_forward(pd), pd.scratchpad_desc(),
                         {{DNNL_ARG_SRC, operands.tensors[0], operands.desc},
                          {DNNL_ARG_DST, operands.tensors[1], operands.desc}});
    if (!LosesNotANumber(*eltwise)) return absl::OkStatus();
    WithElement(CpuProgramBuilder::DtypeOf(operands.desc), [&]<typename Element>(Element) {
      AddLoopStep(
          operands.count, kElementGrain, operands.tensors,
          [](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
            KeepNotANumberLoop(data.At<Element>(0) + begin, end - begin,
                               data.At<Element>(1) + begin);
          },
          program);
    });
    return absl::OkStatus();
  }
  if (IsPlainRelu(attributes)) {
    WithElement(CpuProgramBuilder::DtypeOf(operands.desc), [&]<typename Element>(Element) {
      AddLoopStep(
          operands.count, kElementGrain, operands.tensors,
          [max_value = UpperBound(attributes.max_value)](const RunContext&, const LoopTensors& data,
                                                         int64_t begin, int64_t end) {
            ReluLoop(data.At<Element>(0) + begin, max_value, end - begin,
                     data.At<Element>(1) + begin);
          },
          program);
    });
    return absl::OkStatus();
  }
  WithElement(CpuProgramBuilder::DtypeOf(operands.desc), [&]<typename Element>(Element) {
    AddVectorLoopStep(
        operands.count, operands.tensors,
        [attributes](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          ActivateLoop(attributes, data.At<Element>(0) + begin, end - begin,
                       data.At<Element>(1) + begin);
        },
        program);
  });
  return absl::OkStatus();
}

absl::Status ActivationBackward(const Node& node, CpuProgramBuilder& program) {
  const ActivationAttributes attributes =
      static_cast<const ActivationBackwardOp&>(*node.op).attributes;
  const ValueId x = node.inputs[0], y = node.inputs[1], dy = node.inputs[2];
  const std::optional<Eltwise> eltwise = FindEltwise(attributes);
  const ComputeDtype type = program.stored_dtype(node);
  if (IsPlainRelu(attributes)) {
    // Uses y, because x may not be in memory: the layer before may compute y directly
    // (plan/passes).
    const Operands operands = AlignOperands({dy, y}, node.outputs[0], true, type, program);
    WithElement(type, [&]<typename Element>(Element) {
      AddLoopStep(
          operands.count, kElementGrain, operands.tensors,
          [attributes](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
            ReluBackwardLoop(data.At<Element>(1) + begin, data.At<Element>(0) + begin,
                             UpperBound(attributes.max_value), end - begin,
                             data.At<Element>(2) + begin);
          },
          program);
    });
    return absl::OkStatus();
  }
  if (eltwise.has_value()) {
    const Operands operands = AlignOperands({dy, x}, node.outputs[0], true, type, program);
    const dnnl::eltwise_backward::primitive_desc pd(
        {eltwise->algorithm, operands.desc, operands.desc, eltwise->alpha, 0.0f},
        CpuProgramBuilder::Attributes(), program.engine(),
        EltwiseForward(*eltwise, operands.desc, program));
    program.AddPrimitive(dnnl::eltwise_backward(pd), pd.scratchpad_desc(),
                         {{DNNL_ARG_DIFF_DST, operands.tensors[0], operands.desc},
                          {DNNL_ARG_SRC, operands.tensors[1], operands.desc},
                          {DNNL_ARG_DIFF_SRC, operands.tensors[2], operands.desc}});
    return absl::OkStatus();
  }
  const Operands operands = AlignOperands({dy, x, y}, node.outputs[0], true, type, program);
  WithElement(type, [&]<typename Element>(Element) {
    AddVectorLoopStep(
        operands.count, operands.tensors,
        [attributes](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          ActivateBackwardLoop(attributes, data.At<Element>(1) + begin, data.At<Element>(2) + begin,
                               data.At<Element>(0) + begin, end - begin,
                               data.At<Element>(3) + begin);
        },
        program);
  });
  return absl::OkStatus();
}

float UpperBound(double max_value) {
  return max_value < 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(max_value);
}

ReluBounds FusedReluBounds(const Node& node) {
  const FusedRelu* const relu = FindFusedRelu(*node.op);
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  if (relu == nullptr) return {kNone, kNone};
  return {0, UpperBound(relu->max_value)};
}

void AddFusedRelu(const Node& node, TensorId y, int64_t size_bytes, CpuProgramBuilder& program) {
  const FusedRelu* const relu = FindFusedRelu(*node.op);
  if (relu == nullptr) return;
  const ComputeDtype type = program.builder().tensor_info(y).type;
  WithElement(type, [&]<typename Element>(Element) {
    AddLoopStep(
        size_bytes / SizeOf(type), kElementGrain, {y},
        [max_value = UpperBound(relu->max_value)](const RunContext&, const LoopTensors& data,
                                                  int64_t begin, int64_t end) {
          ReluLoop(data.At<Element>(0) + begin, max_value, end - begin,
                   data.At<Element>(0) + begin);
        },
        program);
  });
}

TensorId AddReluBackward(const FusedRelu& relu, TensorId y, TensorId dy, int64_t size_bytes,
                         CpuProgramBuilder& program) {
  const ComputeDtype type = program.builder().tensor_info(dy).type;
  const TensorId dx = program.builder().AddTensor(size_bytes, type);
  WithElement(type, [&]<typename Element>(Element) {
    AddLoopStep(
        size_bytes / SizeOf(type), kElementGrain, {y, dy, dx},
        [max_value = UpperBound(relu.max_value)](const RunContext&, const LoopTensors& data,
                                                 int64_t begin, int64_t end) {
          ReluBackwardLoop(data.At<Element>(0) + begin, data.At<Element>(1) + begin, max_value,
                           end - begin, data.At<Element>(2) + begin);
        },
        program);
  });
  return dx;
}

}  // namespace shoal::cpu
