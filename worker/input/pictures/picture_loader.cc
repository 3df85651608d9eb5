#include "worker/input/pictures/picture_loader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

int ChannelsOf(const std::string& color_mode) {
  return color_mode == "grayscale" ? 1 : color_mode == "rgba" ? 4 : 3;
}

}  // namespace

absl::StatusOr<PictureLoader> PictureLoader::Make(const DataSource& source, const Feature& input) {
  const Shape& shape = input.shape;
  const bool pictures = shape.size() == 3 && (shape[2] == 1 || shape[2] == 3 || shape[2] == 4);
  PictureLoader loader;
  if (pictures) {
    loader.height_ = shape[0];
    loader.width_ = shape[1];
    loader.decoding_.channels = static_cast<int>(shape[2]);
  }
  if (source.image_height > 0) {
    loader.height_ = source.image_height;
    loader.width_ = source.image_width;
  }
  if (!source.color_mode.empty()) loader.decoding_.channels = ChannelsOf(source.color_mode);
  if (shape != Shape{loader.height_, loader.width_, loader.decoding_.channels}) {
    const std::string made =
        loader.height_ > 0
            ? absl::StrCat(
                  "\"image_size\" and \"color_mode\" make examples of ",
                  ShapeToString({loader.height_, loader.width_, loader.decoding_.channels}))
            : std::string("pictures have height, width and 1, 3 or 4 channels");
    return absl::InvalidArgumentError(absl::StrCat(made, ", but the model's input \"", input.name,
                                                   "\" takes ", ShapeToString(shape)));
  }
  if (source.reduced_decode) {
    loader.decoding_.min_height = loader.height_;
    loader.decoding_.min_width = loader.width_;
  }
  loader.interpolation_ =
      source.interpolation == "nearest" ? Interpolation::kNearest : Interpolation::kBilinear;
  loader.crop_ = source.crop_to_aspect_ratio;
  return loader;
}

absl::Status PictureLoader::Load(std::span<const uint8_t> encoded, MemoryBudget* memory,
                                 std::span<float> out) const {
  // Keeps the memory for the next picture, unless it is large, even if this one fails.
  thread_local std::vector<uint8_t> kept;
  struct Decoded : Picture {
    Decoded() { pixels = std::move(kept); }
    ~Decoded() {
      if (pixels.capacity() <= ReadingMemory::kMaxKept) kept = std::move(pixels);
    }
  } picture;
  DecodeOptions decoding = decoding_;
  decoding.memory = memory;
  SHOAL_RETURN_IF_ERROR(DecodePicture(encoded, decoding, &picture));
  const Crop crop = crop_ ? CropToAspectRatio(picture, height_, width_)
                          : Crop{.height = picture.height, .width = picture.width};
  Resize(picture, crop, height_, width_, interpolation_, out);
  return absl::OkStatus();
}

}  // namespace shoal
