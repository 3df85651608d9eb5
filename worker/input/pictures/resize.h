#pragma once

#include <cstdint>
#include <span>

#include "worker/input/pictures/picture.h"

namespace shoal {

enum class Interpolation { kBilinear, kNearest };

// A piece of a picture.
struct Crop {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
};

// The largest piece in the middle that has the proportions of `height` by `width`:
// keras.preprocessing.image.smart_resize.
Crop CropToAspectRatio(const Picture& picture, int64_t height, int64_t width);

// Writes a piece of a picture as height x width x channels numbers from 0 to 255, as
// tf.image.resize(image, size, method) has it: pixels are squares, of which the middles are
// compared; a picture that shrinks is not smoothed.
void Resize(const Picture& picture, const Crop& crop, int64_t height, int64_t width,
            Interpolation interpolation, std::span<float> out);

}  // namespace shoal
