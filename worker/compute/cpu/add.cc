#include "worker/compute/cpu/activation.h"
#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/operands.h"

namespace shoal::cpu {
namespace {

template <typename Element>
SHOAL_INLINE void SumOf(const Element* a, const Element* b, int64_t count, Element* sum) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) sum[i] = FromFloat<Element>(ToFloat(a[i]) + ToFloat(b[i]));
}
SHOAL_VECTORIZED void SumLoop(const float* a, const float* b, int64_t count, float* sum) {
  SumOf(a, b, count, sum);
}
SHOAL_VECTORIZED void SumLoop(const BFloat16* a, const BFloat16* b, int64_t count, BFloat16* sum) {
  SumOf(a, b, count, sum);
}

// The sum with its fused ReLU. A bound of not-a-number bounds nothing. A value of not-a-number is
// kept.
template <typename Element>
SHOAL_INLINE void BoundedSumOf(const Element* a, const Element* b, ReluBounds bounds, int64_t count,
                               Element* sum) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float of_both = ToFloat(a[i]) + ToFloat(b[i]);
    const float raised = bounds.least > of_both ? bounds.least : of_both;
    sum[i] = FromFloat<Element>(bounds.most < raised ? bounds.most : raised);
  }
}
SHOAL_VECTORIZED void BoundedSumLoop(const float* a, const float* b, ReluBounds bounds,
                                     int64_t count, float* sum) {
  BoundedSumOf(a, b, bounds, count, sum);
}
SHOAL_VECTORIZED void BoundedSumLoop(const BFloat16* a, const BFloat16* b, ReluBounds bounds,
                                     int64_t count, BFloat16* sum) {
  BoundedSumOf(a, b, bounds, count, sum);
}

}  // namespace

absl::Status Add(const Node& node, CpuProgramBuilder& program) {
  const ComputeDtype type = program.stored_dtype(node);
  const Operands operands = AlignOperands(node.inputs, node.outputs[0], true, type, program);
  WithElement(type, [&]<typename Element>(Element) {
    AddLoopStep(
        operands.count, kElementGrain, operands.tensors,
        [inputs = node.inputs.size(), bounds = FusedReluBounds(node)](
            const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          Element* sum = data.At<Element>(inputs) + begin;
          const Element* partial = data.At<Element>(0) + begin;
          for (size_t i = 1; i + 1 < inputs; ++i) {
            SumLoop(partial, data.At<Element>(i) + begin, end - begin, sum);
            partial = sum;
          }
          BoundedSumLoop(partial, data.At<Element>(inputs - 1) + begin, bounds, end - begin, sum);
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cpu
