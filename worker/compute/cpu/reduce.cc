#include "common/model/ops/reduce.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/repetition.h"
#include "worker/compute/op_math/elementwise_functions.h"

namespace shoal::cpu {
namespace {

// Sums in double, because a gradient may sum millions of numbers.
struct Sum {
  static constexpr double kFirst = 0;
  static double Of(double a, double b) { return a + b; }
};
struct Largest {
  static constexpr double kFirst = -std::numeric_limits<double>::infinity();
  static double Of(double a, double b) { return shoal::Binary<BinaryOp::Kind::kMaximum>(a, b); }
};

// Reduces `x` into the result `y`, row by row. Rows for the same place of y are taken in the order
// of memory.
template <typename Reduction>
class ReduceKernel : public Kernel {
 public:
  ReduceKernel(Repetition repetition, int64_t results)
      : repetition_(std::move(repetition)), sums_(results) {}

  // (x, y)
  absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
    const auto* x = static_cast<const float*>(tensors[0]);
    auto* y = static_cast<float*>(tensors[1]);
    std::fill(sums_.begin(), sums_.end(), Reduction::kFirst);
    const int64_t columns = repetition_.columns();
    const bool same_place = repetition_.column_stride(1) == 0;
    for (int64_t row = 0; row < repetition_.rows(); ++row, x += columns) {
      double* sums = sums_.data() + repetition_.RowOffset(1, row);
      if (same_place) {
        double sum = *sums;
        for (int64_t i = 0; i < columns; ++i) sum = Reduction::Of(sum, x[i]);
        *sums = sum;
      } else {
        for (int64_t i = 0; i < columns; ++i) sums[i] = Reduction::Of(sums[i], x[i]);
      }
    }
    std::copy(sums_.begin(), sums_.end(), y);
    return absl::OkStatus();
  }

 private:
  const Repetition repetition_;
  std::vector<double> sums_;
};

template <typename Reduction>
absl::Status Reduce(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Shape x = builder.shape(node.inputs[0]), y = builder.shape(node.outputs[0]);
  builder.AddStep(std::make_unique<ReduceKernel<Reduction>>(Repetition(x, {x, y}), ElementCount(y)),
                  {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])});
  return absl::OkStatus();
}

}  // namespace

absl::Status SumTo(const Node& node, CpuProgram& program) { return Reduce<Sum>(node, program); }

absl::Status MaxTo(const Node& node, CpuProgram& program) { return Reduce<Largest>(node, program); }

absl::Status BroadcastLike(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Repetition repetition(builder.shape(node.outputs[0]), {builder.shape(node.inputs[0])});
  AddLoopStep(
      repetition.rows(), std::max<int64_t>(1, kElementGrain / repetition.columns()),
      {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [repetition](const RunContext&, float* const* data, int64_t begin, int64_t end) {
        const int64_t columns = repetition.columns();
        for (int64_t row = begin; row < end; ++row) {
          const float* x = data[0] + repetition.RowOffset(0, row);
          float* y = data[1] + row * columns;
          if (repetition.column_stride(0) == 1) {
            std::copy_n(x, columns, y);
          } else {
            std::fill_n(y, columns, *x);
          }
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status MeanGradient(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const Shape shape = builder.shape(node.outputs[0]);
  AddLoopStep(
      ElementCount(shape), kElementGrain, {builder.Output(node.outputs[0])},
      [share = 1.0f / static_cast<float>(shape[0])](const RunContext&, float* const* data,
                                                    int64_t begin, int64_t end) {
        std::fill(data[0] + begin, data[0] + end, share);
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
