#include "common/model/ops/reduce.h"

#include <algorithm>
#include <limits>

#include "worker/compute/cpu/broadcast_walk.h"
#include "worker/compute/cpu/channel_rows.h"
#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/image_blocks.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/reduction_parts.h"

namespace shoal::cpu {
namespace {

// Sums in double, because a gradient may sum millions of numbers.
struct Sum {
  using Partial = double;
  static constexpr Partial kFirst = 0;
  SHOAL_INLINE static Partial Of(Partial a, Partial b) { return a + b; }
};
// Not-a-number stays (see BinaryOp::Kind::kMaximum).
struct Largest {
  using Partial = float;
  static constexpr Partial kFirst = -std::numeric_limits<float>::infinity();
  SHOAL_INLINE static Partial Of(Partial a, Partial b) { return ((a > b) | (a != a)) ? a : b; }
};

// Reduces all elements of a run. Element c of a row belongs to lane c % kLanes.
template <typename Reduction>
SHOAL_INLINE typename Reduction::Partial ReduceRun(const float* x, const ReductionParts::Run& run,
                                                   int64_t width) {
  constexpr int kLanes = 16;
  typename Reduction::Partial result = Reduction::kFirst;
  if (width < kLanes) {
    for (int64_t row = 0; row < run.rows; ++row, x += run.stride) {
      for (int64_t c = 0; c < width; ++c) result = Reduction::Of(result, x[c]);
    }
    return result;
  }
  typename Reduction::Partial lanes[kLanes];
  std::fill_n(lanes, kLanes, Reduction::kFirst);
  for (int64_t row = 0; row < run.rows; ++row, x += run.stride) {
    int64_t c = 0;
    for (; c + kLanes <= width; c += kLanes) {
#pragma omp simd
      for (int i = 0; i < kLanes; ++i) lanes[i] = Reduction::Of(lanes[i], x[c + i]);
    }
    for (int i = 0; c + i < width; ++i) lanes[i] = Reduction::Of(lanes[i], x[c + i]);
  }
  for (int i = 0; i < kLanes; ++i) result = Reduction::Of(result, lanes[i]);
  return result;
}
SHOAL_VECTORIZED double SumRun(const float* x, const ReductionParts::Run& run, int64_t width) {
  return ReduceRun<Sum>(x, run, width);
}
SHOAL_VECTORIZED float MaxRun(const float* x, const ReductionParts::Run& run, int64_t width) {
  return ReduceRun<Largest>(x, run, width);
}

// Reduces each row of a run.
template <typename Reduction>
SHOAL_INLINE void ReduceRows(const float* x, int64_t rows, int64_t columns, float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    y[row] =
        static_cast<float>(ReduceRun<Reduction>(x, {.first = 0, .rows = 1, .stride = 0}, columns));
    x += columns;
  }
}
SHOAL_VECTORIZED void SumEachRow(const float* x, int64_t rows, int64_t columns, float* sums) {
  ReduceRows<Sum>(x, rows, columns, sums);
}
SHOAL_VECTORIZED void MaxEachRow(const float* x, int64_t rows, int64_t columns, float* largest) {
  ReduceRows<Largest>(x, rows, columns, largest);
}

// Some columns of a run at a time, in registers.
constexpr int64_t kTiledColumns = 64;
template <typename Reduction>
struct ColumnsTile {
  const float* x;
  const ReductionParts::Run& run;
  typename Reduction::Partial* partials;

  template <int kLanes>
  SHOAL_INLINE void Run(int64_t lane) const {
    typename Reduction::Partial lanes[kLanes];
    std::copy_n(partials + lane, kLanes, lanes);
    const float* from = x + lane;
    for (int64_t row = 0; row < run.rows; ++row, from += run.stride) {
#pragma omp simd
      for (int i = 0; i < kLanes; ++i) lanes[i] = Reduction::Of(lanes[i], from[i]);
    }
    std::copy_n(lanes, kLanes, partials + lane);
  }
};

// Reduces each column of a run into partials[column].
template <typename Reduction>
SHOAL_INLINE void ReduceColumns(const float* x, const ReductionParts::Run& run, int64_t width,
                                typename Reduction::Partial* partials) {
  if (width <= kTiledColumns) {
    ForEachTile(width, ColumnsTile<Reduction>{x, run, partials});
    return;
  }
  for (int64_t row = 0; row < run.rows; ++row, x += run.stride) {
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) partials[c] = Reduction::Of(partials[c], x[c]);
  }
}
SHOAL_VECTORIZED void SumColumns(const float* x, const ReductionParts::Run& run, int64_t width,
                                 double* sums) {
  ReduceColumns<Sum>(x, run, width, sums);
}
SHOAL_VECTORIZED void MaxColumns(const float* x, const ReductionParts::Run& run, int64_t width,
                                 float* largest) {
  ReduceColumns<Largest>(x, run, width, largest);
}

// The reductions with their loops.
struct SumLoops : Sum {
  static void ReduceRows(const float* x, int64_t rows, int64_t columns, float* sums) {
    SumEachRow(x, rows, columns, sums);
  }
  static double ReduceRun(const float* x, const ReductionParts::Run& run, int64_t width) {
    return SumRun(x, run, width);
  }
  static void ReduceColumns(const float* x, const ReductionParts::Run& run, int64_t width,
                            double* sums) {
    SumColumns(x, run, width, sums);
  }
};
struct MaxLoops : Largest {
  static void ReduceRows(const float* x, int64_t rows, int64_t columns, float* largest) {
    MaxEachRow(x, rows, columns, largest);
  }
  static float ReduceRun(const float* x, const ReductionParts::Run& run, int64_t width) {
    return MaxRun(x, run, width);
  }
  static void ReduceColumns(const float* x, const ReductionParts::Run& run, int64_t width,
                            float* largest) {
    MaxColumns(x, run, width, largest);
  }
};

// Reduces parts [begin, end) of x into their results.
template <typename Reduction, typename Result>
void ReduceParts(const ReductionParts& parts, const float* x, int64_t begin, int64_t end,
                 Result* results) {
  for (int64_t i = begin; i < end; ++i) {
    const ReductionParts::Part part = parts.part(i);
    typename Reduction::Partial partials[ReductionParts::kMaxKeptColumns];
    const int64_t count = parts.columns_kept() ? part.width : 1;
    std::fill_n(partials, count, Reduction::kFirst);
    for (int64_t row = part.row_begin; row < part.row_end;) {
      const ReductionParts::Run run = parts.RunFrom(part, row);
      if (parts.columns_kept()) {
        Reduction::ReduceColumns(x + run.first, run, part.width, partials);
      } else {
        *partials = Reduction::Of(*partials, Reduction::ReduceRun(x + run.first, run, part.width));
      }
      row += run.rows;
    }
    std::copy_n(partials, count, results + part.result);
  }
}

// The block in which to reduce all pixels of the image `x` to a number for each channel; 0: the
// row-major layout. With whole blocks the result is row-major, too.
int64_t BlockOfPixels(ValueId x, const Shape& y_shape, CpuProgramBuilder& program) {
  const Shape shape = program.builder().shape(x);
  if (!IsPerChannel(y_shape, shape)) return 0;
  const int64_t block = ChannelRows::BlockOf(shape, program.ImageDesc(x));
  return block > 0 && shape[3] % block == 0 ? block : 0;
}
Shape BlockedPixel(const Shape& y_shape, const Shape& x_shape, int64_t block) {
  return {y_shape.size() == 4 ? y_shape[0] : 1, x_shape[3] / block, 1, 1, block};
}

// Adds the steps that reduce x to y. Parts that share an element of y have results of their own,
// which a second step reduces in order.
template <typename Reduction>
absl::Status Reduce(const Node& node, CpuProgramBuilder& program) {
  using Partial = typename Reduction::Partial;
  ProgramBuilder& builder = program.builder();
  const Shape x_shape = builder.shape(node.inputs[0]), y_shape = builder.shape(node.outputs[0]);
  const int64_t block = BlockOfPixels(node.inputs[0], y_shape, program);
  const ReductionParts parts = block == 0 ? ReductionParts(x_shape, y_shape)
                                          : ReductionParts(BlockedShape(x_shape, block),
                                                           BlockedPixel(y_shape, x_shape, block));
  const TensorId x = InBlocks(node.inputs[0], block, ComputeDtype::kFloat32, program);
  const TensorId y = builder.Output(node.outputs[0]);
  const int64_t grain = std::max<int64_t>(1, kElementGrain / parts.part_elements());
  if (parts.results_of_each() == 1) {
    AddLoopStep(
        parts.count(), grain, {x, y},
        [parts](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          if (parts.are_rows()) {
            Reduction::ReduceRows(data[0] + begin * parts.columns(), end - begin, parts.columns(),
                                  data[1] + begin);
            return;
          }
          ReduceParts<Reduction>(parts, data[0], begin, end, data[1]);
        },
        program);
    return absl::OkStatus();
  }
  const TensorId partials =
      builder.AddTensor(parts.result_count() * static_cast<int64_t>(sizeof(Partial)));
  AddLoopStep(
      parts.count(), grain, {x, partials},
      [parts](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        ReduceParts<Reduction>(parts, data[0], begin, end, reinterpret_cast<Partial*>(data[1]));
      },
      program);
  AddLoopStep(
      ElementCount(y_shape), std::max<int64_t>(1, kElementGrain / parts.results_of_each()),
      {partials, y},
      [parts](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const Partial* from = reinterpret_cast<const Partial*>(data[0]) + parts.FirstResult(i);
          Partial result = Reduction::kFirst;
          for (int64_t p = 0; p < parts.results_of_each(); ++p) {
            result = Reduction::Of(result, from[p * parts.results_stride()]);
          }
          data[1][i] = static_cast<float>(result);
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace

absl::Status SumTo(const Node& node, CpuProgramBuilder& program) {
  return Reduce<SumLoops>(node, program);
}

absl::Status MaxTo(const Node& node, CpuProgramBuilder& program) {
  return Reduce<MaxLoops>(node, program);
}

absl::Status BroadcastLike(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const BroadcastWalk repetition(builder.shape(node.outputs[0]), {builder.shape(node.inputs[0])});
  const ComputeDtype type = program.stored_dtype(node);
  WithElement(type, [&]<typename Element>(Element) {
    AddLoopStep(
        repetition.rows(), std::max<int64_t>(1, kElementGrain / repetition.columns()),
        {program.RowMajor(node.inputs[0], type), builder.Output(node.outputs[0], type)},
        [repetition](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          const int64_t columns = repetition.columns();
          for (int64_t row = begin; row < end; ++row) {
            const Element* x = data.At<Element>(0) + repetition.RowOffset(0, row);
            Element* y = data.At<Element>(1) + row * columns;
            if (repetition.column_stride(0) == 1) {
              std::copy_n(x, columns, y);
            } else {
              std::fill_n(y, columns, *x);
            }
          }
        },
        program);
  });
  return absl::OkStatus();
}

absl::Status MeanGradient(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const Shape shape = builder.shape(node.outputs[0]);
  AddLoopStep(
      ElementCount(shape), kElementGrain, {builder.Output(node.outputs[0])},
      [share = 1.0f / static_cast<float>(shape[0])](const RunContext&, const LoopTensors& data,
                                                    int64_t begin, int64_t end) {
        std::fill(data[0] + begin, data[0] + end, share);
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
