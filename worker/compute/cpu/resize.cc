#include "common/model/ops/resize.h"

#include <algorithm>

#include "worker/compute/cpu/channel_rows.h"
#include "worker/compute/cpu/image_blocks.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/op_math/resize_sources.h"

namespace shoal::cpu {
namespace {

// Up to four pixels and their weights. Those of weight 0 are left out: their infinities do not
// count.
struct WeightedPixels {
  int count = 0;
  int64_t place[4];  // of the first channel
  float weight[4];
};

// The sources of a pixel, in an image whose rows have `width` pixels of `channels` each.
SHOAL_INLINE WeightedPixels SourcesOf(const ResizeSource& row, const ResizeSource& column,
                                      int64_t width, int64_t channels) {
  WeightedPixels pixels;
  for (const int a : {0, 1}) {
    for (const int e : {0, 1}) {
      const double weight = row.weight[a] * column.weight[e];
      if (weight == 0) continue;
      pixels.place[pixels.count] = (row.index[a] * width + column.index[e]) * channels;
      pixels.weight[pixels.count++] = static_cast<float>(weight);
    }
  }
  return pixels;
}

// to = the weighted sum of the pixels of `from`
struct GatherTile {
  const WeightedPixels& pixels;
  const float* from;
  float* to;

  template <int kLanes>
  SHOAL_INLINE void Run(int64_t lane) const {
    float sum[kLanes] = {};
    for (int p = 0; p < pixels.count; ++p) {
      const float* pixel = from + pixels.place[p] + lane;
      const float weight = pixels.weight[p];
#pragma omp simd
      for (int i = 0; i < kLanes; ++i) sum[i] += weight * pixel[i];
    }
    std::copy_n(sum, kLanes, to + lane);
  }
};

// Adds `from` with their weights to the pixels of `to`.
struct ScatterTile {
  const WeightedPixels& pixels;
  const float* from;
  float* to;

  template <int kLanes>
  SHOAL_INLINE void Run(int64_t lane) const {
    for (int p = 0; p < pixels.count; ++p) {
      float* pixel = to + pixels.place[p] + lane;
      const float weight = pixels.weight[p];
#pragma omp simd
      for (int i = 0; i < kLanes; ++i) pixel[i] += weight * from[lane + i];
    }
  }
};

// The columns of a row of the resized image.
struct ResizeColumns {
  const ResizeSource* sources;
  int64_t count;
  int64_t x_width;
  int64_t channels;
};

// Computes a row `y` from the image x.
SHOAL_VECTORIZED void ResizeRow(const ResizeSource& row, const ResizeColumns& columns,
                                const float* x, float* y) {
  for (int64_t i = 0; i < columns.count; ++i, y += columns.channels) {
    const WeightedPixels pixels =
        SourcesOf(row, columns.sources[i], columns.x_width, columns.channels);
    ForEachTile(columns.channels, GatherTile{pixels, x, y});
  }
}

// Adds the gradient `dy` of a row to that of the image.
SHOAL_VECTORIZED void ResizeRowGradient(const ResizeSource& row, const ResizeColumns& columns,
                                        const float* dy, float* dx) {
  for (int64_t i = 0; i < columns.count; ++i, dy += columns.channels) {
    const WeightedPixels pixels =
        SourcesOf(row, columns.sources[i], columns.x_width, columns.channels);
    ForEachTile(columns.channels, ScatterTile{pixels, dy, dx});
  }
}

// The rows of both images, [B, H, W, C]. Blocks of channels count as images of their own.
struct ResizeShapes {
  ResizeShapes(const Shape& x_image, const Shape& y_image, int64_t block)
      : x(BlocksAsImages(x_image, block)), y(BlocksAsImages(y_image, block)) {}

  static Shape BlocksAsImages(const Shape& image, int64_t block) {
    if (block == 0) return image;
    return {image[0] * ((image[3] + block - 1) / block), image[1], image[2], block};
  }

  Shape x, y;
};

}  // namespace

absl::Status Resize(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const auto interpolation = static_cast<const ResizeOp&>(*node.op).interpolation;
  const int64_t block = BlockFor(node.inputs, node.outputs[0], program);
  const auto [x, y] =
      ResizeShapes(builder.shape(node.inputs[0]), builder.shape(node.outputs[0]), block);
  AddLoopStep(
      y[0] * y[1], std::max<int64_t>(1, kElementGrain / (y[2] * y[3])),
      {InBlocks(node.inputs[0], block, program), OutInBlocks(node.outputs[0], block, program)},
      [x = x, y = y, rows = ResizeSources(interpolation, x[1], y[1]),
       columns = ResizeSources(interpolation, x[2], y[2])](const RunContext&, float* const* data,
                                                           int64_t begin, int64_t end) {
        const ResizeColumns of_row = {columns.data(), y[2], x[2], x[3]};
        for (int64_t row = begin; row < end; ++row) {
          ResizeRow(rows[row % y[1]], of_row, data[0] + row / y[1] * x[1] * x[2] * x[3],
                    data[1] + row * y[2] * y[3]);
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status ResizeBackward(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const auto interpolation = static_cast<const ResizeBackwardOp&>(*node.op).interpolation;
  const int64_t block = BlockFor({node.inputs[0]}, node.outputs[0], program);
  const auto [x, y] =
      ResizeShapes(builder.shape(node.outputs[0]), builder.shape(node.inputs[0]), block);
  AddLoopStep(
      x[0], std::max<int64_t>(1, kElementGrain / (y[1] * y[2] * y[3])),
      {InBlocks(node.inputs[0], block, program), OutInBlocks(node.outputs[0], block, program)},
      [x = x, y = y, rows = ResizeSources(interpolation, x[1], y[1]),
       columns = ResizeSources(interpolation, x[2], y[2])](const RunContext&, float* const* data,
                                                           int64_t begin, int64_t end) {
        const ResizeColumns of_row = {columns.data(), y[2], x[2], x[3]};
        const int64_t image = x[1] * x[2] * x[3];
        std::fill(data[1] + begin * image, data[1] + end * image, 0.0f);
        for (int64_t row = begin * y[1]; row < end * y[1]; ++row) {
          ResizeRowGradient(rows[row % y[1]], of_row, data[0] + row * y[2] * y[3],
                            data[1] + row / y[1] * image);
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
