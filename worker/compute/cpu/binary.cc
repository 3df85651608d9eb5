#include "common/model/ops/binary.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "worker/compute/cpu/broadcast_walk.h"
#include "worker/compute/cpu/channel_rows.h"
#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/image_blocks.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/operands.h"
#include "worker/compute/op_math/elementwise_functions.h"

namespace shoal::cpu {
namespace {

using BinaryKind = BinaryOp::Kind;

// Two operands of a loop over columns. Each either advances along the columns (stride 1) or repeats
// one value (stride 0).
template <typename Element>
struct ColumnOperands {
  const Element* a;
  const Element* b;
  int64_t stride_a = 1;
  int64_t stride_b = 1;
};

template <BinaryKind kind, int stride_a, int stride_b, typename Element>
SHOAL_INLINE void ColumnLoop(const Element* a, const Element* b, int64_t count, Element* y) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    y[i] =
        FromFloat<Element>(shoal::Binary<kind>(ToFloat(a[i * stride_a]), ToFloat(b[i * stride_b])));
  }
}
template <BinaryKind kind, typename Element>
SHOAL_INLINE void ColumnLoopOf(const ColumnOperands<Element>& from, int64_t count, Element* y) {
  if (from.stride_a == 1) {
    if (from.stride_b == 1) return ColumnLoop<kind, 1, 1>(from.a, from.b, count, y);
    return ColumnLoop<kind, 1, 0>(from.a, from.b, count, y);
  }
  if (from.stride_b == 1) return ColumnLoop<kind, 0, 1>(from.a, from.b, count, y);
  ColumnLoop<kind, 0, 0>(from.a, from.b, count, y);
}

// An image in a blocked layout and a number for each lane.
template <typename Element>
struct ImageOperands {
  const Element* image;
  const float* by_lane;
  bool image_first;
};

template <BinaryKind kind, bool image_first, typename Element>
struct ImageAndLanes {
  const Element* image;
  const float* by_lane;

  SHOAL_INLINE float Get(int64_t place, int64_t lane) const {
    const float a = ToFloat(image[place]), b = by_lane[lane];
    return image_first ? shoal::Binary<kind>(a, b) : shoal::Binary<kind>(b, a);
  }
};
template <BinaryKind kind, bool image_first, typename Element>
SHOAL_INLINE void BlockLoop(const ImageOperands<Element>& from, int64_t rows, int64_t lanes,
                            Element* y) {
  const ImageAndLanes<kind, image_first, Element> values = {from.image, from.by_lane};
  // The lanes of a block are 8 or 16. Constant counts make a row one or two vectors.
  if (lanes == kMaxBlock) return MapRowsOf(values, rows, kMaxBlock, y);
  MapRowsOf(values, rows, kMaxBlock / 2, y);
}
template <BinaryKind kind, typename Element>
SHOAL_INLINE void BlockLoopOf(const ImageOperands<Element>& from, int64_t rows, int64_t lanes,
                              Element* y) {
  if (from.image_first) return BlockLoop<kind, true>(from, rows, lanes, y);
  BlockLoop<kind, false>(from, rows, lanes, y);
}

#define SHOAL_FOR_EACH_BINARY(KIND) \
  KIND(kAdd)                        \
  KIND(kSubtract)                   \
  KIND(kMultiply)                   \
  KIND(kDivide)                     \
  KIND(kMaximum)                    \
  KIND(kMinimum)                    \
  KIND(kGreater)

template <typename Element>
SHOAL_INLINE void MapColumnsOf(BinaryKind kind, const ColumnOperands<Element>& from, int64_t count,
                               Element* y) {
  switch (kind) {
#define KIND(NAME)       \
  case BinaryKind::NAME: \
    return ColumnLoopOf<BinaryKind::NAME>(from, count, y);
    SHOAL_FOR_EACH_BINARY(KIND)
#undef KIND
  }
}
SHOAL_VECTORIZED void MapColumns(BinaryKind kind, const ColumnOperands<float>& from, int64_t count,
                                 float* y) {
  MapColumnsOf(kind, from, count, y);
}
SHOAL_VECTORIZED void MapColumns(BinaryKind kind, const ColumnOperands<BFloat16>& from,
                                 int64_t count, BFloat16* y) {
  MapColumnsOf(kind, from, count, y);
}

template <typename Element>
SHOAL_INLINE void MapImageOf(BinaryKind kind, const ImageOperands<Element>& from, int64_t rows,
                             int64_t lanes, Element* y) {
  switch (kind) {
#define KIND(NAME)       \
  case BinaryKind::NAME: \
    return BlockLoopOf<BinaryKind::NAME>(from, rows, lanes, y);
    SHOAL_FOR_EACH_BINARY(KIND)
#undef KIND
  }
}
SHOAL_VECTORIZED void MapImage(BinaryKind kind, const ImageOperands<float>& from, int64_t rows,
                               int64_t lanes, float* y) {
  MapImageOf(kind, from, rows, lanes, y);
}
SHOAL_VECTORIZED void MapImage(BinaryKind kind, const ImageOperands<BFloat16>& from, int64_t rows,
                               int64_t lanes, BFloat16* y) {
  MapImageOf(kind, from, rows, lanes, y);
}

#undef SHOAL_FOR_EACH_BINARY

// Whether f(0, 0) = 0, as the padding of a layout requires.
bool ZerosStay(BinaryKind kind) {
  return kind != BinaryKind::kDivide && kind != BinaryKind::kGreater;
}

// An image and numbers for each of its channels, for which a blocked layout has a loop.
struct PerChannel {
  int image;             // which of the inputs
  int64_t block;         // of the image
  int64_t batch_stride;  // between the numbers of two examples
};
std::optional<PerChannel> FindPerChannel(BinaryKind kind, const Node& node,
                                         CpuProgramBuilder& program) {
  const ProgramBuilder& builder = program.builder();
  const Shape y = builder.shape(node.outputs[0]);
  for (const int image : {0, 1}) {
    const Shape numbers = builder.shape(node.inputs[1 - image]);
    if (builder.shape(node.inputs[image]) != y || !IsPerChannel(numbers, y)) continue;
    const int64_t block = BlockFor({node.inputs[image]}, node.outputs[0], program);
    if (block == 0 || (!ZerosStay(kind) && y[3] % block != 0)) return std::nullopt;
    return PerChannel{image, block, numbers.size() == 4 && numbers[0] > 1 ? y[3] : 0};
  }
  return std::nullopt;
}

template <typename Element>
void AddPerChannelStep(BinaryKind kind, const PerChannel& operands, ComputeDtype type,
                       const Node& node, CpuProgramBuilder& program) {
  const Shape shape = program.builder().shape(node.outputs[0]);
  const ChannelRows rows(shape, BlockedLayout(shape, operands.block, type));
  AddLoopStep(
      rows.units(), rows.grain(),
      {InBlocks(node.inputs[operands.image], operands.block, type, program),
       program.RowMajor(node.inputs[1 - operands.image], type),
       OutInBlocks(node.outputs[0], operands.block, type, program)},
      [kind, rows, image_first = operands.image == 0, stride = operands.batch_stride](
          const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const ChannelRows::Unit unit = rows.unit(i);
          const Element* numbers = data.At<Element>(1) + i / rows.blocks() * stride + unit.channel;
          float by_lane[kMaxBlock] = {};
          const int64_t lanes = std::min(rows.lanes(), rows.channels() - unit.channel);
          for (int64_t lane = 0; lane < lanes; ++lane) by_lane[lane] = ToFloat(numbers[lane]);
          MapImage(kind,
                   ImageOperands<Element>{data.At<Element>(0) + unit.place, by_lane, image_first},
                   unit.rows, rows.lanes(), data.At<Element>(2) + unit.place);
        }
      },
      program);
}

template <typename Element>
void AddBinarySteps(ComputeDtype type, const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const BinaryKind kind = static_cast<const BinaryOp&>(*node.op).kind;
  if (builder.shape(node.inputs[0]) == builder.shape(node.inputs[1])) {
    const Operands operands =
        AlignOperands(node.inputs, node.outputs[0], ZerosStay(kind), type, program);
    AddLoopStep(
        operands.count, kElementGrain, operands.tensors,
        [kind](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          MapColumns(
              kind,
              ColumnOperands<Element>{data.At<Element>(0) + begin, data.At<Element>(1) + begin},
              end - begin, data.At<Element>(2) + begin);
        },
        program);
    return;
  }
  if (const std::optional<PerChannel> operands = FindPerChannel(kind, node, program)) {
    return AddPerChannelStep<Element>(kind, *operands, type, node, program);
  }
  const BroadcastWalk repetition(builder.shape(node.outputs[0]),
                                 {builder.shape(node.inputs[0]), builder.shape(node.inputs[1])});
  const std::vector<TensorId> tensors = {program.RowMajor(node.inputs[0], type),
                                         program.RowMajor(node.inputs[1], type),
                                         builder.Output(node.outputs[0], type)};
  const int64_t columns = repetition.columns();
  const int64_t a = repetition.column_stride(0), b = repetition.column_stride(1);
  if (repetition.rows() == 1) {
    return AddLoopStep(
        columns, kElementGrain, tensors,
        [=](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          MapColumns(kind,
                     ColumnOperands<Element>{data.At<Element>(0) + a * begin,
                                             data.At<Element>(1) + b * begin, a, b},
                     end - begin, data.At<Element>(2) + begin);
        },
        program);
  }
  AddLoopStep(
      repetition.rows(), std::max<int64_t>(1, kElementGrain / columns), tensors,
      [=](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          MapColumns(
              kind,
              ColumnOperands<Element>{data.At<Element>(0) + repetition.RowOffset(0, row),
                                      data.At<Element>(1) + repetition.RowOffset(1, row), a, b},
              columns, data.At<Element>(2) + row * columns);
        }
      },
      program);
}

}  // namespace

absl::Status Binary(const Node& node, CpuProgramBuilder& program) {
  const ComputeDtype type = program.stored_dtype(node);
  WithElement(type,
              [&]<typename Element>(Element) { AddBinarySteps<Element>(type, node, program); });
  return absl::OkStatus();
}

}  // namespace shoal::cpu
