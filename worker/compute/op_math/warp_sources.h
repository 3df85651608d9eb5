#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "common/model/ops/warp.h"
#include "worker/compute/op_math/host_device.h"

namespace shoal {

// Maps pixel (i, j) of a warped image to its position in the input: row a i + b j + c, with {a, b,
// c} in `row`, and the column likewise.
struct WarpMap {
  std::array<double, 3> row;
  std::array<double, 3> column;

  SHOAL_HOST_DEVICE double Row(int64_t i, int64_t j) const { return Place(row, i, j); }
  SHOAL_HOST_DEVICE double Column(int64_t i, int64_t j) const { return Place(column, i, j); }
  // Whether rows depend only on rows and columns only on columns.
  bool separable() const { return row[1] == 0 && column[0] == 0; }

 private:
  SHOAL_HOST_DEVICE static double Place(const std::array<double, 3>& by, int64_t i, int64_t j) {
    return by[0] * static_cast<double>(i) + by[1] * static_cast<double>(j) + by[2];
  }
};

// The map of an image of `height` x `width` for `count` random numbers.
template <typename Scalar>
SHOAL_HOST_DEVICE WarpMap WarpMapOf(const WarpAttributes& attributes, const Scalar* numbers,
                                    int64_t count, int64_t height, int64_t width) {
  const double first = numbers[0], second = numbers[count - 1];
  const double last_row = static_cast<double>(height - 1),
               last_column = static_cast<double>(width - 1);
  switch (attributes.kind) {
    case WarpAttributes::Kind::kFlip: {
      const bool flips = first <= 0.5;
      const bool rows = flips && attributes.flip_rows, columns = flips && attributes.flip_columns;
      return {{rows ? -1.0 : 1.0, 0, rows ? last_row : 0},
              {0, columns ? -1.0 : 1.0, columns ? last_column : 0}};
    }
    case WarpAttributes::Kind::kTranslate:
      return {{1, 0, -first * static_cast<double>(height)},
              {0, 1, -second * static_cast<double>(width)}};
    case WarpAttributes::Kind::kRotate: {
      const double angle = 2 * std::numbers::pi * first;
      const double cos = std::cos(angle), sin = std::sin(angle);
      return {{cos, sin, (last_row - last_row * cos - last_column * sin) / 2},
              {-sin, cos, (last_column - last_column * cos + last_row * sin) / 2}};
    }
    case WarpAttributes::Kind::kZoom:
      return {{first, 0, last_row / 2 * (1 - first)}, {0, second, last_column / 2 * (1 - second)}};
    case WarpAttributes::Kind::kCrop:
      break;
  }
  return {{1, 0, first}, {0, 1, second}};
}

// The sources of a position on an axis: two elements, and their weights. An index of -1 is the
// constant outside.
struct WarpSource {
  std::array<int64_t, 2> index;
  std::array<double, 2> weight;
};

// The remainder, never negative.
SHOAL_HOST_DEVICE inline int64_t Modulo(int64_t index, int64_t period) {
  return ((index % period) + period) % period;
}

// Returns the source index for element `index`, which may lie beyond the ends of the axis.
SHOAL_HOST_DEVICE inline int64_t FilledIndex(WarpAttributes::Fill fill, int64_t index,
                                             int64_t extent) {
  switch (fill) {
    case WarpAttributes::Fill::kConstant:
      return index < 0 || index >= extent ? -1 : index;
    case WarpAttributes::Fill::kNearest:
      return std::clamp<int64_t>(index, 0, extent - 1);
    case WarpAttributes::Fill::kReflect: {
      const int64_t place = Modulo(index, 2 * extent);
      return place < extent ? place : 2 * extent - 1 - place;
    }
    case WarpAttributes::Fill::kWrap:
      break;
  }
  return Modulo(index, extent);
}

SHOAL_HOST_DEVICE inline WarpSource WarpSourceAt(const WarpAttributes& attributes, double place,
                                                 int64_t extent) {
  const bool nearest = attributes.interpolation == ResizeOp::Interpolation::kNearest;
  const double low = nearest ? std::round(place) : std::floor(place);
  const double share = nearest ? 0 : place - low;
  const auto index = static_cast<int64_t>(low);
  return {{FilledIndex(attributes.fill, index, extent),
           FilledIndex(attributes.fill, index + 1, extent)},
          {1 - share, share}};
}

}  // namespace shoal
