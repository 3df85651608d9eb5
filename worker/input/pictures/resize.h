#pragma once

#include <cstdint>
#include <span>

#include "worker/input/pictures/picture.h"

namespace shoal {

enum class Interpolation { kBilinear, kNearest };

// A part of a picture.
struct Crop {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
};

// Returns the largest centered part with the aspect ratio of `height` by `width`, as in
// keras.preprocessing.image.smart_resize.
Crop CropToAspectRatio(const Picture& picture, int64_t height, int64_t width);

// Writes a part of a picture as height x width x channels numbers from 0 to 255, as in
// tf.image.resize(image, size, method). Pixels are squares, and their centers are the positions. A
// shrinking picture is not smoothed.
void Resize(const Picture& picture, const Crop& crop, int64_t height, int64_t width,
            Interpolation interpolation, std::span<float> out);

}  // namespace shoal
