#include "common/model/ops/warp.h"

#include <algorithm>
#include <array>
#include <vector>

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/op_math/warp_sources.h"

namespace shoal::cpu {
namespace {

// The source pixels of one image. If all rows have the same source columns, it computes them once.
class ImageSources {
 public:
  ImageSources(const WarpAttributes& attributes, const Shape& x, const Shape& y)
      : attributes_(attributes), x_(x), y_(y), columns_(y[2]) {}

  // Moves to the image with these numbers.
  void Begin(const float* numbers, int64_t count) {
    map_ = WarpMapOf(attributes_, numbers, count, x_[1], x_[2]);
    for (int64_t j = 0; map_.separable() && j < y_[2]; ++j) columns_[j] = ColumnAt(0, j);
  }

  // Calls visit(j, pixel, weight) for each source pixel of row i of the result. `pixel` is its
  // index, or -1 for the constant outside of the image.
  template <typename Visit>
  void ForEachOfRow(int64_t i, const Visit& visit) const {
    WarpSource row = RowAt(i, 0);
    for (int64_t j = 0; j < y_[2]; ++j) {
      if (!map_.separable()) row = RowAt(i, j);
      const WarpSource column = map_.separable() ? columns_[j] : ColumnAt(i, j);
      for (const int a : {0, 1}) {
        for (const int e : {0, 1}) {
          const double weight = row.weight[a] * column.weight[e];
          if (weight == 0) continue;
          const bool outside = row.index[a] < 0 || column.index[e] < 0;
          visit(j, outside ? -1 : row.index[a] * x_[2] + column.index[e],
                static_cast<float>(weight));
        }
      }
    }
  }

 private:
  WarpSource RowAt(int64_t i, int64_t j) const {
    return WarpSourceAt(attributes_, map_.Row(i, j), x_[1]);
  }
  WarpSource ColumnAt(int64_t i, int64_t j) const {
    return WarpSourceAt(attributes_, map_.Column(i, j), x_[2]);
  }

  const WarpAttributes& attributes_;  // outlives this
  const Shape& x_;                    // outlives this
  const Shape& y_;                    // outlives this
  WarpMap map_ = {};
  std::vector<WarpSource> columns_;
};

}  // namespace

absl::Status Warp(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const Shape x = builder.shape(node.inputs[0]), y = builder.shape(node.outputs[0]);
  const int64_t count = builder.shape(node.inputs[1])[1];
  AddLoopStep(
      y[0] * y[1], std::max<int64_t>(1, kElementGrain / (y[2] * y[3])),
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [x, y, count, attributes = static_cast<const WarpOp&>(*node.op).attributes](
          const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        ImageSources sources(attributes, x, y);
        const int64_t channels = x[3];
        const std::vector<float> outside(channels, static_cast<float>(attributes.fill_value));
        std::fill(data[2] + begin * y[2] * channels, data[2] + end * y[2] * channels, 0.0f);
        for (int64_t row = begin; row < end; ++row) {
          const int64_t example = row / y[1];
          if (row == begin || row % y[1] == 0) sources.Begin(data[1] + example * count, count);
          const float* image = data[0] + example * x[1] * x[2] * channels;
          float* line = data[2] + row * y[2] * channels;
          sources.ForEachOfRow(row % y[1], [&](int64_t j, int64_t pixel, float weight) {
            const float* from = pixel < 0 ? outside.data() : image + pixel * channels;
            float* to = line + j * channels;
            for (int64_t c = 0; c < channels; ++c) to[c] += weight * from[c];
          });
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status WarpBackward(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const Shape x = builder.shape(node.outputs[0]), y = builder.shape(node.inputs[0]);
  const int64_t count = builder.shape(node.inputs[1])[1];
  AddLoopStep(
      x[0], std::max<int64_t>(1, kElementGrain / (y[1] * y[2] * y[3])),
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [x, y, count, attributes = static_cast<const WarpBackwardOp&>(*node.op).attributes](
          const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        ImageSources sources(attributes, x, y);
        const int64_t channels = x[3], size = x[1] * x[2] * channels;
        std::fill(data[2] + begin * size, data[2] + end * size, 0.0f);
        for (int64_t row = begin * y[1]; row < end * y[1]; ++row) {
          const int64_t example = row / y[1];
          if (row % y[1] == 0) sources.Begin(data[1] + example * count, count);
          const float* line = data[0] + row * y[2] * channels;
          float* image = data[2] + example * size;
          sources.ForEachOfRow(row % y[1], [&](int64_t j, int64_t pixel, float weight) {
            if (pixel < 0) return;
            const float* from = line + j * channels;
            float* to = image + pixel * channels;
            for (int64_t c = 0; c < channels; ++c) to[c] += weight * from[c];
          });
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
