#include "common/model/ops/binary.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "worker/compute/cpu/broadcast_walk.h"
#include "worker/compute/cpu/channel_rows.h"
#include "worker/compute/cpu/image_blocks.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/operands.h"
#include "worker/compute/op_math/elementwise_functions.h"

namespace shoal::cpu {
namespace {

template <BinaryOp::Kind kind, int stride_a, int stride_b>
void Loop(const float* a, const float* b, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = shoal::Binary<kind>(a[i * stride_a], b[i * stride_b]);
  }
}

// Selects a loop over columns. Each operand either advances along the columns or repeats one value.
template <BinaryOp::Kind kind>
auto LoopOf(const BroadcastWalk& repetition) {
  const bool a = repetition.column_stride(0) == 1, b = repetition.column_stride(1) == 1;
  return a ? (b ? Loop<kind, 1, 1> : Loop<kind, 1, 0>) : (b ? Loop<kind, 0, 1> : Loop<kind, 0, 0>);
}

// Whether f(0, 0) = 0, as the padding of a layout requires.
bool ZerosStay(BinaryOp::Kind kind) {
  return kind != BinaryOp::Kind::kDivide && kind != BinaryOp::Kind::kGreater;
}

// f of an image in a blocked layout and of a number for each lane.
template <BinaryOp::Kind kind, bool image_first>
struct ImageAndLanes {
  const float* image;
  const float* by_lane;

  SHOAL_INLINE float Get(int64_t place, int64_t lane) const {
    const float a = image[place], b = by_lane[lane];
    return image_first ? shoal::Binary<kind>(a, b) : shoal::Binary<kind>(b, a);
  }
};

// An image and numbers for each of its channels, for which a blocked layout has a loop.
struct PerChannel {
  int image;             // which of the inputs
  int64_t block;         // of the image
  int64_t batch_stride;  // between the numbers of two examples
};
std::optional<PerChannel> FindPerChannel(BinaryOp::Kind kind, const Node& node,
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

template <BinaryOp::Kind kind, bool image_first>
void AddPerChannelStep(const PerChannel& operands, const Node& node, CpuProgramBuilder& program) {
  const Shape shape = program.builder().shape(node.outputs[0]);
  const ChannelRows rows(shape, BlockedLayout(shape, operands.block, ComputeDtype::kFloat32));
  AddLoopStep(
      rows.units(), rows.grain(),
      {InBlocks(node.inputs[operands.image], operands.block, ComputeDtype::kFloat32, program),
       program.RowMajor(node.inputs[1 - operands.image]),
       OutInBlocks(node.outputs[0], operands.block, ComputeDtype::kFloat32, program)},
      [rows, stride = operands.batch_stride](const RunContext&, const LoopTensors& data,
                                             int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const ChannelRows::Unit unit = rows.unit(i);
          float by_lane[kMaxBlock] = {};
          std::copy_n(data[1] + i / rows.blocks() * stride + unit.channel,
                      std::min(rows.lanes(), rows.channels() - unit.channel), by_lane);
          MapRows(ImageAndLanes<kind, image_first>{data[0] + unit.place, by_lane}, unit.rows,
                  rows.lanes(), data[2] + unit.place);
        }
      },
      program);
}

}  // namespace

absl::Status Binary(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const BinaryOp::Kind op_kind = static_cast<const BinaryOp&>(*node.op).kind;
  if (builder.shape(node.inputs[0]) == builder.shape(node.inputs[1])) {
    const Operands operands = AlignOperands(node.inputs, node.outputs[0], ZerosStay(op_kind),
                                            ComputeDtype::kFloat32, program);
    WithConstantKind(op_kind, [&](auto kind) {
      const auto loop = Loop<kind(), 1, 1>;
      AddLoopStep(
          operands.count, kElementGrain, operands.tensors,
          [loop](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
            loop(data[0] + begin, data[1] + begin, end - begin, data[2] + begin);
          },
          program);
    });
    return absl::OkStatus();
  }
  if (const std::optional<PerChannel> operands = FindPerChannel(op_kind, node, program)) {
    WithConstantKind(op_kind, [&](auto kind) {
      if (operands->image == 0) {
        AddPerChannelStep<kind(), true>(*operands, node, program);
      } else {
        AddPerChannelStep<kind(), false>(*operands, node, program);
      }
    });
    return absl::OkStatus();
  }
  const BroadcastWalk repetition(builder.shape(node.outputs[0]),
                                 {builder.shape(node.inputs[0]), builder.shape(node.inputs[1])});
  const std::vector<TensorId> tensors = {program.RowMajor(node.inputs[0]),
                                         program.RowMajor(node.inputs[1]),
                                         builder.Output(node.outputs[0])};
  WithConstantKind(op_kind, [&](auto kind) {
    const auto loop = LoopOf<kind()>(repetition);
    const int64_t columns = repetition.columns();
    if (repetition.rows() == 1) {
      const int64_t a = repetition.column_stride(0), b = repetition.column_stride(1);
      return AddLoopStep(
          columns, kElementGrain, tensors,
          [=](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
            loop(data[0] + a * begin, data[1] + b * begin, end - begin, data[2] + begin);
          },
          program);
    }
    AddLoopStep(
        repetition.rows(), std::max<int64_t>(1, kElementGrain / columns), tensors,
        [=](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            loop(data[0] + repetition.RowOffset(0, row), data[1] + repetition.RowOffset(1, row),
                 columns, data[2] + row * columns);
          }
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cpu
