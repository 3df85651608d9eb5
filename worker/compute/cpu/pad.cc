#include "common/model/ops/pad.h"

#include <algorithm>
#include <vector>

#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/image_blocks.h"
#include "worker/compute/cpu/loop_kernel.h"

namespace shoal::cpu {
namespace {

// A box within a larger tensor, as rows that are contiguous in both. Axes without margins are
// merged with the axis before.
class Box {
 public:
  // `before_axes` has the margins before each axis but the first.
  Box(const Shape& inner, const Shape& outer, const std::vector<int64_t>& before_axes) {
    for (size_t i = 0; i < inner.size(); ++i) {
      const int64_t before = i == 0 ? 0 : before_axes[i - 1];
      if (i > 0 && inner[i] == outer[i]) {
        axes_.back().inner *= inner[i];
        axes_.back().outer *= inner[i];
        axes_.back().before *= inner[i];
      } else {
        axes_.push_back({inner[i], outer[i], before});
      }
    }
    row_ = axes_.back();
    axes_.pop_back();
    for (const Axis& axis : axes_) {
      inner_rows_ *= axis.inner;
      outer_rows_ *= axis.outer;
    }
  }

  struct Axis {
    int64_t inner, outer, before;
  };
  // Elements of a row.
  const Axis& row() const { return row_; }
  int64_t inner_rows() const { return inner_rows_; }
  int64_t outer_rows() const { return outer_rows_; }

  // The outer row that contains a row of the box.
  int64_t OuterRow(int64_t inner_row) const {
    int64_t result = 0, stride = 1;
    for (size_t i = axes_.size(); i-- > 0;) {
      result += (inner_row % axes_[i].inner + axes_[i].before) * stride;
      inner_row /= axes_[i].inner;
      stride *= axes_[i].outer;
    }
    return result;
  }
  // The row of the box in an outer row; -1 if there is none.
  int64_t InnerRow(int64_t outer_row) const {
    int64_t result = 0, stride = 1;
    for (size_t i = axes_.size(); i-- > 0;) {
      const int64_t place = outer_row % axes_[i].outer - axes_[i].before;
      if (place < 0 || place >= axes_[i].inner) return -1;
      result += place * stride;
      outer_row /= axes_[i].outer;
      stride *= axes_[i].inner;
    }
    return result;
  }

 private:
  std::vector<Axis> axes_;  // without the axis of the rows
  Axis row_ = {};
  int64_t inner_rows_ = 1;
  int64_t outer_rows_ = 1;
};

// The block in which to pad or crop an image, where `inner` is the smaller one. Margins of channels
// must be whole blocks.
int64_t BlockOfBox(ValueId x, ValueId y, const Shape& inner, const Shape& outer, bool crop,
                   const Margins& margins, CpuProgramBuilder& program) {
  const int64_t block = BlockFor({x}, y, program);
  if (block == 0 || margins.before[2] % block != 0) return 0;
  // A block that is filled up would get channels of the larger image.
  const bool at_end = margins.before[2] + inner[3] == outer[3];
  return crop && !at_end && inner[3] % block != 0 ? 0 : block;
}

// The margins of a blocked image, which has the axis of the channels first (image_blocks.h).
std::vector<int64_t> BlockedMargins(const std::vector<int64_t>& before, int64_t block) {
  if (block == 0) return before;
  return {before[2] / block, before[0], before[1], 0};
}

int64_t PaddedRowGrain(int64_t row) { return std::max<int64_t>(1, kElementGrain / row); }

}  // namespace

absl::Status Pad(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const Margins& margins = static_cast<const PadOp&>(*node.op).margins;
  const Shape inner_shape = builder.shape(node.inputs[0]);
  const Shape outer_shape = builder.shape(node.outputs[0]);
  const int64_t block = BlockOfBox(node.inputs[0], node.outputs[0], inner_shape, outer_shape,
                                   /*crop=*/false, margins, program);
  const Box box(BlockedShape(inner_shape, block), BlockedShape(outer_shape, block),
                BlockedMargins(margins.before, block));
  const ComputeDtype type = program.stored_dtype(node);
  WithElement(type, [&]<typename Element>(Element) {
    AddLoopStep(
        box.outer_rows(), PaddedRowGrain(box.row().outer),
        {InBlocks(node.inputs[0], block, type, program),
         OutInBlocks(node.outputs[0], block, type, program)},
        [box](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          const auto [inner, outer, before] = box.row();
          for (int64_t row = begin; row < end; ++row) {
            Element* y = data.At<Element>(1) + row * outer;
            const int64_t source = box.InnerRow(row);
            if (source < 0) {
              std::fill_n(y, outer, Element());
              continue;
            }
            y = std::fill_n(y, before, Element());
            y = std::copy_n(data.At<Element>(0) + source * inner, inner, y);
            std::fill_n(y, outer - inner - before, Element());
          }
        },
        program);
  });
  return absl::OkStatus();
}

absl::Status Crop(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const Margins& margins = static_cast<const CropOp&>(*node.op).margins;
  const Shape inner_shape = builder.shape(node.outputs[0]);
  const Shape outer_shape = builder.shape(node.inputs[0]);
  const int64_t block = BlockOfBox(node.inputs[0], node.outputs[0], inner_shape, outer_shape,
                                   /*crop=*/true, margins, program);
  const Box box(BlockedShape(inner_shape, block), BlockedShape(outer_shape, block),
                BlockedMargins(margins.before, block));
  const ComputeDtype type = program.stored_dtype(node);
  WithElement(type, [&]<typename Element>(Element) {
    AddLoopStep(
        box.inner_rows(), PaddedRowGrain(box.row().inner),
        {InBlocks(node.inputs[0], block, type, program),
         OutInBlocks(node.outputs[0], block, type, program)},
        [box](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          const auto [inner, outer, before] = box.row();
          for (int64_t row = begin; row < end; ++row) {
            std::copy_n(data.At<Element>(0) + box.OuterRow(row) * outer + before, inner,
                        data.At<Element>(1) + row * inner);
          }
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cpu
