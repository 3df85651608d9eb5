#include "worker/input/pictures/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace shoal {
namespace {

// The two rows or columns around an output position, and its distance from the lower one.
struct Between {
  int64_t lower;
  int64_t upper;
  float share;  // weight of the upper one
};

// tensorflow/core/kernels/image/resize_bilinear_op.cc, with HalfPixelScaler; in float, as there.
std::vector<Between> BilinearPlaces(int64_t in, int64_t out) {
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  std::vector<Between> places(static_cast<size_t>(out));
  for (int64_t i = 0; i < out; ++i) {
    const float at = (static_cast<float>(i) + 0.5f) * scale - 0.5f;
    const float floor = std::floor(at);
    places[i].lower = std::max(static_cast<int64_t>(floor), int64_t{0});
    places[i].upper = std::min(static_cast<int64_t>(std::ceil(at)), in - 1);
    places[i].share = at - floor;
  }
  return places;
}

void Bilinear(const Picture& picture, const Crop& crop, int64_t height, int64_t width, float* out) {
  const int channels = picture.channels;
  const std::vector<Between> rows = BilinearPlaces(crop.height, height);
  const std::vector<Between> columns = BilinearPlaces(crop.width, width);
  const auto row_at = [&](int64_t y) {
    return picture.pixels.data() + ((crop.top + y) * picture.width + crop.left) * channels;
  };
  for (const Between& row : rows) {
    const uint8_t* const upper_row = row_at(row.lower);
    const uint8_t* const lower_row = row_at(row.upper);
    for (const Between& column : columns) {
      const int64_t left = column.lower * channels;
      const int64_t right = column.upper * channels;
      for (int c = 0; c < channels; ++c) {
        const float top_left = upper_row[left + c], top_right = upper_row[right + c];
        const float bottom_left = lower_row[left + c], bottom_right = lower_row[right + c];
        const float top = top_left + (top_right - top_left) * column.share;
        const float bottom = bottom_left + (bottom_right - bottom_left) * column.share;
        *out++ = top + (bottom - top) * row.share;
      }
    }
  }
}

// tensorflow/core/kernels/image/resize_nearest_neighbor_op.cc, with half_pixel_centers.
void Nearest(const Picture& picture, const Crop& crop, int64_t height, int64_t width, float* out) {
  const int channels = picture.channels;
  const float row_scale = static_cast<float>(crop.height) / static_cast<float>(height);
  const float column_scale = static_cast<float>(crop.width) / static_cast<float>(width);
  const auto place = [](int64_t i, float scale, int64_t size) {
    const float at = (static_cast<float>(i) + 0.5f) * scale;
    return std::max(int64_t{0}, std::min(static_cast<int64_t>(std::floor(at)), size - 1));
  };
  for (int64_t y = 0; y < height; ++y) {
    const int64_t row = crop.top + place(y, row_scale, crop.height);
    for (int64_t x = 0; x < width; ++x) {
      const int64_t column = crop.left + place(x, column_scale, crop.width);
      const uint8_t* pixel = picture.pixels.data() + (row * picture.width + column) * channels;
      out = std::copy_n(pixel, channels, out);
    }
  }
}

}  // namespace

Crop CropToAspectRatio(const Picture& picture, int64_t height, int64_t width) {
  const auto piece = [](int64_t of, int64_t other, int64_t wanted, int64_t wanted_other) {
    return std::min(of, static_cast<int64_t>(static_cast<double>(other * wanted) / wanted_other));
  };
  Crop crop;
  crop.height = std::max<int64_t>(1, piece(picture.height, picture.width, height, width));
  crop.width = std::max<int64_t>(1, piece(picture.width, picture.height, width, height));
  crop.top = (picture.height - crop.height) / 2;
  crop.left = (picture.width - crop.width) / 2;
  return crop;
}

void Resize(const Picture& picture, const Crop& crop, int64_t height, int64_t width,
            Interpolation interpolation, std::span<float> out) {
  if (interpolation == Interpolation::kNearest) {
    Nearest(picture, crop, height, width, out.data());
  } else {
    Bilinear(picture, crop, height, width, out.data());
  }
}

}  // namespace shoal
