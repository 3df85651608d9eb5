#include <algorithm>

#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/vector_math.h"

namespace shoal::cpu {
namespace {

// y = a * sigmoid(b)
template <typename Element>
SHOAL_INLINE void GluRowOf(const Element* a, const Element* b, int64_t half, Element* y) {
#pragma omp simd
  for (int64_t i = 0; i < half; ++i)
    y[i] = FromFloat<Element>(ToFloat(a[i]) * Sigmoid(ToFloat(b[i])));
}
SHOAL_VECTORIZED void GluRow(const float* a, const float* b, int64_t half, float* y) {
  GluRowOf(a, b, half, y);
}
SHOAL_VECTORIZED void GluRow(const BFloat16* a, const BFloat16* b, int64_t half, BFloat16* y) {
  GluRowOf(a, b, half, y);
}

template <typename Element>
SHOAL_INLINE void GluRowGradientOf(const Element* a, const Element* b, const Element* dy,
                                   int64_t half, Element* da, Element* db) {
#pragma omp simd
  for (int64_t i = 0; i < half; ++i) {
    const float sigmoid = Sigmoid(ToFloat(b[i]));
    da[i] = FromFloat<Element>(ToFloat(dy[i]) * sigmoid);
    db[i] = FromFloat<Element>(ToFloat(dy[i]) * ToFloat(a[i]) * sigmoid * (1 - sigmoid));
  }
}
SHOAL_VECTORIZED void GluRowGradient(const float* a, const float* b, const float* dy, int64_t half,
                                     float* da, float* db) {
  GluRowGradientOf(a, b, dy, half, da, db);
}
SHOAL_VECTORIZED void GluRowGradient(const BFloat16* a, const BFloat16* b, const BFloat16* dy,
                                     int64_t half, BFloat16* da, BFloat16* db) {
  GluRowGradientOf(a, b, dy, half, da, db);
}

}  // namespace

absl::Status Glu(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto [rows, half] = CpuProgramBuilder::ExtentsOf(builder.shape(node.outputs[0]));
  const ComputeDtype type = program.stored_dtype(node);
  WithElement(type, [&, rows = rows, half = half]<typename Element>(Element) {
    AddLoopStep(
        rows, std::max<int64_t>(1, kElementGrain / half),
        {program.RowMajor(node.inputs[0], type), builder.Output(node.outputs[0], type)},
        [half](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const Element* x = data.At<Element>(0) + 2 * row * half;
            GluRow(x, x + half, half, data.At<Element>(1) + row * half);
          }
        },
        program);
  });
  return absl::OkStatus();
}

absl::Status GluBackward(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto [rows, half] = CpuProgramBuilder::ExtentsOf(builder.shape(node.inputs[1]));
  const ComputeDtype type = program.stored_dtype(node);
  WithElement(type, [&, rows = rows, half = half]<typename Element>(Element) {
    AddLoopStep(
        rows, std::max<int64_t>(1, kElementGrain / half),
        {program.RowMajor(node.inputs[0], type), program.RowMajor(node.inputs[1], type),
         builder.Output(node.outputs[0], type)},
        [half](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const Element* x = data.At<Element>(0) + 2 * row * half;
            Element* dx = data.At<Element>(2) + 2 * row * half;
            GluRowGradient(x, x + half, data.At<Element>(1) + row * half, half, dx, dx + half);
          }
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cpu
