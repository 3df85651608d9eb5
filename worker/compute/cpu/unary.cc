#include "common/model/ops/unary.h"

#include <cmath>

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/vector_math.h"
#include "worker/compute/op_math/elementwise_functions.h"

namespace shoal::cpu {
namespace {

template <typename Function>
SHOAL_INLINE void UnaryLoop(const Function function, const float* x, int64_t count, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = function.Of(x[i]);
}

struct ExpFunction {
  SHOAL_INLINE static float Of(float x) { return Exp(x); }
};
struct AbsFunction {
  SHOAL_INLINE static float Of(float x) { return std::abs(x); }
};
struct SquareFunction {
  SHOAL_INLINE static float Of(float x) { return x * x; }
};
struct SquareRootFunction {
  SHOAL_INLINE static float Of(float x) { return std::sqrt(x); }
};
struct ClipFunction {
  SHOAL_INLINE float Of(float x) const { return Within(x, low, high); }
  float low, high;
};

// Computes the functions of op_math/elementwise_functions.h in vectors; returns false for others.
SHOAL_VECTORIZED bool RunUnaryLoop(const UnaryOp& op, const float* x, int64_t count, float* y) {
  switch (op.kind) {
    case UnaryOp::Kind::kExp:
      UnaryLoop(ExpFunction(), x, count, y);
      return true;
    case UnaryOp::Kind::kAbs:
      UnaryLoop(AbsFunction(), x, count, y);
      return true;
    case UnaryOp::Kind::kSquare:
      UnaryLoop(SquareFunction(), x, count, y);
      return true;
    case UnaryOp::Kind::kSquareRoot:
      UnaryLoop(SquareRootFunction(), x, count, y);
      return true;
    case UnaryOp::Kind::kClip:
      UnaryLoop(ClipFunction{static_cast<float>(op.low), static_cast<float>(op.high)}, x, count, y);
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::Status Unary(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  AddVectorLoopStep(
      ElementCount(builder.shape(node.outputs[0])),
      {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [op = static_cast<const UnaryOp&>(*node.op)](const RunContext&, const LoopTensors& data,
                                                   int64_t begin, int64_t end) {
        if (RunUnaryLoop(op, data[0] + begin, end - begin, data[1] + begin)) return;
        for (int64_t i = begin; i < end; ++i) data[1][i] = shoal::Unary(op, data[0][i]);
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
