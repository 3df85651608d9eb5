#include "common/model/ops/resize.h"

#include <algorithm>
#include <vector>

#include "worker/compute/cpu/channel_rows.h"
#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/image_blocks.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/op_math/resize_sources.h"

namespace shoal::cpu {
namespace {

// One, two or four pixels and their weights. Those of weight 0 are left out: their infinities do
// not count.
struct WeightedPixels {
  int count = 0;
  int64_t place[4];  // of the first channel
  float weight[4];
};

// The sources of a pixel, in an image whose rows have `width` pixels of `channels` each.
WeightedPixels SourcesOf(const ResizeSource& row, const ResizeSource& column, int64_t width,
                         int64_t channels) {
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
template <int kPixels, typename Element>
struct GatherTile {
  const WeightedPixels& pixels;
  const Element* from;
  Element* to;

  template <int kLanes>
  SHOAL_INLINE void Run(int64_t lane) const {
    const Element* const first = from + lane;
    Element* const result = to + lane;
#pragma omp simd
    for (int i = 0; i < kLanes; ++i) {
      float sum = pixels.weight[0] * ToFloat(first[pixels.place[0] + i]);
      if constexpr (kPixels > 1) sum += pixels.weight[1] * ToFloat(first[pixels.place[1] + i]);
      if constexpr (kPixels > 2) sum += pixels.weight[2] * ToFloat(first[pixels.place[2] + i]);
      if constexpr (kPixels > 2) sum += pixels.weight[3] * ToFloat(first[pixels.place[3] + i]);
      result[i] = FromFloat<Element>(sum);
    }
  }
};

// Adds `from` with their weights to the pixels of `to`.
template <typename Element>
struct ScatterTile {
  const WeightedPixels& pixels;
  const Element* from;
  float* to;

  template <int kLanes>
  SHOAL_INLINE void Run(int64_t lane) const {
    for (int p = 0; p < pixels.count; ++p) {
      float* pixel = to + pixels.place[p] + lane;
      const float weight = pixels.weight[p];
#pragma omp simd
      for (int i = 0; i < kLanes; ++i) pixel[i] += weight * ToFloat(from[lane + i]);
    }
  }
};

// The sources of all pixels of a row of the resized image. `x_width` is the width of the other one.
std::vector<WeightedPixels> SourcesOfRow(const ResizeSource& row,
                                         const std::vector<ResizeSource>& columns, int64_t x_width,
                                         int64_t channels) {
  std::vector<WeightedPixels> sources;
  sources.reserve(columns.size());
  for (const ResizeSource& column : columns) {
    sources.push_back(SourcesOf(row, column, x_width, channels));
  }
  return sources;
}

template <typename Element>
SHOAL_INLINE void ResizePixels(const std::vector<WeightedPixels>& sources, int64_t channels,
                               const Element* x, Element* y) {
  for (const WeightedPixels& pixels : sources) {
    if (pixels.count == 4) {
      ForEachTile(channels, GatherTile<4, Element>{pixels, x, y});
    } else if (pixels.count == 2) {
      ForEachTile(channels, GatherTile<2, Element>{pixels, x, y});
    } else {
      ForEachTile(channels, GatherTile<1, Element>{pixels, x, y});
    }
    y += channels;
  }
}
template <typename Element>
SHOAL_INLINE void ResizeRowOf(const std::vector<WeightedPixels>& sources, int64_t channels,
                              const Element* x, Element* y) {
  // Constant channels make a pixel of a blocked layout one or two vectors.
  if (channels == 16) return ResizePixels(sources, 16, x, y);
  if (channels == 8) return ResizePixels(sources, 8, x, y);
  ResizePixels(sources, channels, x, y);
}
// Computes a row `y` from the image x.
SHOAL_VECTORIZED void ResizeRow(const std::vector<WeightedPixels>& sources, int64_t channels,
                                const float* x, float* y) {
  ResizeRowOf(sources, channels, x, y);
}
SHOAL_VECTORIZED void ResizeRow(const std::vector<WeightedPixels>& sources, int64_t channels,
                                const BFloat16* x, BFloat16* y) {
  ResizeRowOf(sources, channels, x, y);
}

template <typename Element>
SHOAL_INLINE void ResizePixelGradients(const std::vector<WeightedPixels>& sources, int64_t channels,
                                       const Element* dy, float* dx) {
  for (const WeightedPixels& pixels : sources) {
    ForEachTile(channels, ScatterTile<Element>{pixels, dy, dx});
    dy += channels;
  }
}
template <typename Element>
SHOAL_INLINE void ResizeRowGradientOf(const std::vector<WeightedPixels>& sources, int64_t channels,
                                      const Element* dy, float* dx) {
  if (channels == 16) return ResizePixelGradients(sources, 16, dy, dx);
  if (channels == 8) return ResizePixelGradients(sources, 8, dy, dx);
  ResizePixelGradients(sources, channels, dy, dx);
}
// Adds the gradient `dy` of a row to that of the image.
SHOAL_VECTORIZED void ResizeRowGradient(const std::vector<WeightedPixels>& sources,
                                        int64_t channels, const float* dy, float* dx) {
  ResizeRowGradientOf(sources, channels, dy, dx);
}
SHOAL_VECTORIZED void ResizeRowGradient(const std::vector<WeightedPixels>& sources,
                                        int64_t channels, const BFloat16* dy, float* dx) {
  ResizeRowGradientOf(sources, channels, dy, dx);
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

absl::Status Resize(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto interpolation = static_cast<const ResizeOp&>(*node.op).interpolation;
  const int64_t block = BlockFor(node.inputs, node.outputs[0], program);
  const auto [x, y] =
      ResizeShapes(builder.shape(node.inputs[0]), builder.shape(node.outputs[0]), block);
  const ComputeDtype type = program.stored_dtype(node);
  WithElement(type, [&, x = x, y = y]<typename Element>(Element) {
    AddLoopStep(
        y[0] * y[1], std::max<int64_t>(1, kElementGrain / (y[2] * y[3])),
        {InBlocks(node.inputs[0], block, type, program),
         OutInBlocks(node.outputs[0], block, type, program)},
        [x, y, rows = ResizeSources(interpolation, x[1], y[1]),
         columns = ResizeSources(interpolation, x[2], y[2])](
            const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          // The same row of all images, then the next one: they share its sources.
          std::vector<WeightedPixels> sources;
          for (int64_t i = begin; i < end; ++i) {
            const int64_t row = i / y[0], image = i % y[0];
            if (i == begin || image == 0) sources = SourcesOfRow(rows[row], columns, x[2], x[3]);
            ResizeRow(sources, y[3], data.At<Element>(0) + image * x[1] * x[2] * x[3],
                      data.At<Element>(1) + (image * y[1] + row) * y[2] * y[3]);
          }
        },
        program);
  });
  return absl::OkStatus();
}

// Reads either type. dx is float32, because many pixels may add to one. Its readers convert it.
absl::Status ResizeBackward(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto interpolation = static_cast<const ResizeBackwardOp&>(*node.op).interpolation;
  const int64_t block = BlockFor({node.inputs[0]}, node.outputs[0], program);
  const auto [x, y] =
      ResizeShapes(builder.shape(node.outputs[0]), builder.shape(node.inputs[0]), block);
  const ComputeDtype type = program.stored_dtype(node);
  WithElement(type, [&, x = x, y = y]<typename Element>(Element) {
    AddLoopStep(
        x[0], std::max<int64_t>(1, kElementGrain / (y[1] * y[2] * y[3])),
        {InBlocks(node.inputs[0], block, type, program),
         OutInBlocks(node.outputs[0], block, ComputeDtype::kFloat32, program)},
        [x, y, rows = ResizeSources(interpolation, x[1], y[1]),
         columns = ResizeSources(interpolation, x[2], y[2])](
            const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          const int64_t size = x[1] * x[2] * x[3];
          std::fill(data[1] + begin * size, data[1] + end * size, 0.0f);
          for (int64_t row = 0; row < y[1]; ++row) {
            const std::vector<WeightedPixels> sources =
                SourcesOfRow(rows[row], columns, x[2], x[3]);
            for (int64_t image = begin; image < end; ++image) {
              ResizeRowGradient(sources, y[3],
                                data.At<Element>(0) + (image * y[1] + row) * y[2] * y[3],
                                data[1] + image * size);
            }
          }
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cpu
