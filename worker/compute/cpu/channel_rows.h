#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/shape.h"
#include "worker/compute/cpu/cpu_program_builder.h"
#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/loops.h"

// For loops that treat each channel separately, over tensors that are row-major or in oneDNN's
// blocked layouts of images. Both consist of rows, with one lane for each adjacent channel.

namespace shoal::cpu {

// Rows to sum at a time: few enough for float32 sums and for the cache.
inline constexpr int64_t kRowsAtATime = 256;

// A tensor cut into units. The rows of a unit begin with the same channel.
class ChannelRows {
 public:
  struct Unit {
    int64_t place;    // index of its first element
    int64_t rows;     // `lanes` elements each
    int64_t channel;  // channel of the first lane
  };

  // `desc` is the layout of an image of this shape. It is ignored for other tensors, which are
  // row-major. Requires a row-major or blocked layout (see LayoutFor).
  ChannelRows(const Shape& shape, const dnnl::memory::desc& desc) {
    channels_ = lanes_ = shape.back();
    const int64_t rows = channels_ == 0 ? 0 : ElementCount(shape) / channels_;
    if (const int64_t block = BlockOf(shape, desc); block > 0) {
      lanes_ = block;
      blocks_ = (channels_ + block - 1) / block;
      rows_ = rows * blocks_;
      unit_rows_ = rows / shape[0];
    } else {
      rows_ = rows;
      unit_rows_ = kRowsAtATime;
    }
  }

  // Channels of a block; 0 if the layout is not blocked.
  static int64_t BlockOf(const Shape& shape, const dnnl::memory::desc& desc) {
    if (shape.size() != 4) return 0;
    const dnnl::memory::dims dims = {shape[0], shape[3], shape[1], shape[2]};
    using Tag = dnnl::memory::format_tag;
    if (desc == dnnl::memory::desc(dims, desc.data_type(), Tag::nChw16c)) return 16;
    if (desc == dnnl::memory::desc(dims, desc.data_type(), Tag::nChw8c)) return 8;
    return 0;
  }

  // Returns the layout in which to process `value`'s tensor as elements of `type`: its own if
  // blocked, else row-major.
  static dnnl::memory::desc LayoutFor(ValueId value, ComputeDtype type,
                                      CpuProgramBuilder& program) {
    const Shape shape = program.builder().shape(value);
    if (shape.size() != 4) {
      return {
          {ElementCount(shape)}, CpuProgramBuilder::DataTypeOf(type), dnnl::memory::format_tag::x};
    }
    const dnnl::memory::desc own = program.ImageDesc(value);
    return BlockOf(shape, own) > 0 ? CpuProgramBuilder::WithType(own, type)
                                   : CpuProgramBuilder::RowMajorImage(shape, type);
  }

  // Returns the tensor of `value` in such a layout: In() for an input, Out() for a result.
  static TensorId In(ValueId value, const dnnl::memory::desc& layout, CpuProgramBuilder& program) {
    if (program.builder().shape(value).size() == 4) return program.ImageIn(value, layout);
    return program.RowMajor(value, CpuProgramBuilder::DtypeOf(layout));
  }
  static TensorId Out(ValueId value, const dnnl::memory::desc& layout, CpuProgramBuilder& program) {
    if (program.builder().shape(value).size() == 4) return program.ImageOutput(value, layout);
    return program.builder().Output(value, CpuProgramBuilder::DtypeOf(layout));
  }

  int64_t channels() const { return channels_; }
  // Channels, including those that pad the last block.
  int64_t padded_channels() const { return lanes_ * blocks_; }
  int64_t lanes() const { return lanes_; }
  int64_t blocks() const { return blocks_; }
  int64_t units() const { return (rows_ + unit_rows_ - 1) / unit_rows_; }
  Unit unit(int64_t i) const {
    return {i * unit_rows_ * lanes_, std::min(unit_rows_, rows_ - i * unit_rows_),
            i % blocks_ * lanes_};
  }
  // The min number of units for another thread.
  int64_t grain() const { return std::max<int64_t>(1, kElementGrain / (unit_rows_ * lanes_)); }

 private:
  int64_t channels_ = 0;
  int64_t lanes_ = 0;
  int64_t blocks_ = 1;
  int64_t rows_ = 0;
  int64_t unit_rows_ = 1;
};

// Calls tile.Run<kLanes>(lane) for tiles of kLanes lanes that together cover `lanes` lanes.
template <typename Tile>
SHOAL_INLINE void ForEachTile(int64_t lanes, const Tile& tile) {
  int64_t lane = 0;
  for (; lane + 16 <= lanes; lane += 16) tile.template Run<16>(lane);
  for (; lane + 8 <= lanes; lane += 8) tile.template Run<8>(lane);
  for (; lane < lanes; ++lane) tile.template Run<1>(lane);
}

// Computes two sums for each lane over `rows` rows: sums[lane] and sums[lanes + lane].
// `terms.Add(place, lane, first, second)` adds an element's terms to them.
template <typename Terms>
struct SumTile {
  const Terms& terms;
  int64_t rows;
  int64_t lanes;
  float* sums;

  template <int kLanes>
  SHOAL_INLINE void Run(int64_t lane) const {
    const Terms from = terms;
    float first[kLanes] = {}, second[kLanes] = {};
    for (int64_t begin = 0; begin < rows; begin += kRowsAtATime) {
      const int64_t end = std::min(rows, begin + kRowsAtATime);
      float part_first[kLanes] = {}, part_second[kLanes] = {};
      for (int64_t row = begin; row < end; ++row) {
        const int64_t place = row * lanes + lane;
#pragma omp simd
        for (int i = 0; i < kLanes; ++i) {
          from.Add(place + i, lane + i, part_first[i], part_second[i]);
        }
      }
      for (int i = 0; i < kLanes; ++i) first[i] += part_first[i];
      for (int i = 0; i < kLanes; ++i) second[i] += part_second[i];
    }
    std::copy_n(first, kLanes, sums + lane);
    std::copy_n(second, kLanes, sums + lanes + lane);
  }
};
template <typename Terms>
SHOAL_INLINE void SumRows(const Terms& terms, int64_t rows, int64_t lanes, float* sums) {
  ForEachTile(lanes, SumTile<Terms>{terms, rows, lanes, sums});
}

// Computes result[place] = values.Get(place, lane) for each element of `rows` rows. Requires that
// the lanes' data are not in `result`.
template <typename Values, typename Element>
SHOAL_INLINE void MapRowsOf(const Values values, int64_t rows, int64_t lanes,
                            Element* __restrict result) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t place = row * lanes;
#pragma omp simd
    for (int64_t lane = 0; lane < lanes; ++lane) {
      result[place + lane] = FromFloat<Element>(values.Get(place + lane, lane));
    }
  }
}
template <typename Values, typename Element>
SHOAL_INLINE void MapRows(const Values& values, int64_t rows, int64_t lanes, Element* result) {
  // Constant lane counts make a row of a blocked layout one or two vectors.
  if (lanes == 16) return MapRowsOf(values, rows, 16, result);
  if (lanes == 8) return MapRowsOf(values, rows, 8, result);
  MapRowsOf(values, rows, lanes, result);
}

}  // namespace shoal::cpu
