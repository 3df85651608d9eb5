#include "worker/input/pictures/contact_sheet.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/input/pictures/picture.h"

namespace shoal {
namespace {

constexpr int64_t kGap = 2;  // pixels between pictures
constexpr uint8_t kGapLevel = 128;

}  // namespace

absl::StatusOr<std::string> DrawContactSheet(std::span<const float> values, const Shape& shape) {
  const int64_t channels = shape.size() == 3 ? shape[2] : 1;
  if ((shape.size() != 2 && shape.size() != 3) || channels == 2 || channels > 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("examples of shape ", ShapeToString(shape),
                     " are no pictures; expected height, width and perhaps 1, 3 or 4 channels"));
  }
  const int64_t height = shape[0], width = shape[1];
  const auto pictures = static_cast<int64_t>(values.size()) / ElementCount(shape);
  const auto columns = static_cast<int64_t>(
      std::max(1.0, std::round(std::sqrt(static_cast<double>(pictures) * height / width))));
  const int64_t rows = (pictures + columns - 1) / columns;
  const int64_t sheet_height = rows * (height + kGap) - kGap;
  const int64_t sheet_width = columns * (width + kGap) - kGap;
  if (pictures == 0 || sheet_height > kMaxPixels / sheet_width) {
    return absl::InvalidArgumentError(absl::StrCat(pictures, " pictures of ", height, " x ", width,
                                                   " make no sheet of 1 to ", kMaxPixels,
                                                   " pixels"));
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const float black = *least < 0 && *most <= 1 ? -1 : 0;
  const float scale = *most > 1 ? 1 : 255 / (1 - black);
  std::vector<uint8_t> sheet(static_cast<size_t>(sheet_height * sheet_width * channels), kGapLevel);
  const float* value = values.data();
  for (int64_t i = 0; i < pictures; ++i) {
    const int64_t top = i / columns * (height + kGap), left = i % columns * (width + kGap);
    for (int64_t y = 0; y < height; ++y) {
      uint8_t* out = sheet.data() + ((top + y) * sheet_width + left) * channels;
      for (int64_t x = 0; x < width * channels; ++x) {
        const float level = (*value++ - black) * scale;
        out[x] = level > 0 ? static_cast<uint8_t>(std::min(level + 0.5f, 255.0f)) : 0;
      }
    }
  }
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(sheet_height);
  image.width = static_cast<png_uint_32>(sheet_width);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string png(size, 0);
  if (png_image_write_to_memory(&image, png.data(), &size, 0, sheet.data(), 0, nullptr) == 0)
    return absl::InternalError(absl::StrCat("the sheet cannot be written: ", image.message));
  png.resize(size);
  return png;
}

}  // namespace shoal
