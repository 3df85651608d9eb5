#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/options/factor_option.h"
#include "common/model/ops/mode_switch.h"
#include "common/model/ops/pad.h"
#include "common/model/ops/random_uniform.h"
#include "common/model/ops/resize.h"
#include "common/model/ops/warp.h"

// Layers that move, turn or scale images in training. Each is one Warp op with random numbers for
// each image.

namespace shoal {
namespace {

using WarpKind = WarpAttributes::Kind;

// A layer whose output images have the shape of its input images. Does nothing in inference.
class RandomWarp : public LayerConfig {
 public:
  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectImages());
    auto warp = std::make_shared<WarpOp>();
    warp->attributes = attributes_;
    warp->height = call.input_shape()[1];
    warp->width = call.input_shape()[2];
    auto random = std::make_shared<RandomUniformOp>();
    random->ranges = ranges_;
    random->layer_seed = call.RandomSeed(seed_);
    const ValueId x = call.inputs()[0];
    SHOAL_ASSIGN_OR_RETURN(const ValueId numbers, call.Add(std::move(random)));
    SHOAL_ASSIGN_OR_RETURN(const ValueId warped, call.Add(std::move(warp), {x, numbers}));
    return call.Add(std::make_shared<ModeSwitchOp>(), {warped, x});
  }

 protected:
  RandomWarp(LayerOptions& options, WarpKind kind) : seed_(options.Seed()) {
    attributes_.kind = kind;
    options.ExpectChannelsLast();
  }

  // Reads how to fill places between pixels and beyond the sides.
  void ReadFill(LayerOptions& options) {
    using Fill = WarpAttributes::Fill;
    constexpr std::array kFills = {Fill::kReflect, Fill::kWrap, Fill::kConstant, Fill::kNearest};
    attributes_.fill =
        kFills[options.OneOf("fill_mode", {"reflect", "wrap", "constant", "nearest"}, 0)];
    attributes_.interpolation = options.Interpolation("bilinear");
    attributes_.fill_value = options.Number("fill_value", 0, kAllNumbers);
  }

  WarpAttributes attributes_;
  std::vector<RandomUniformOp::Range> ranges_;  // of the random numbers of the map

 private:
  const int64_t seed_;
};

class RandomFlip : public RandomWarp {
 public:
  explicit RandomFlip(LayerOptions& options) : RandomWarp(options, WarpKind::kFlip) {
    const size_t mode =
        options.OneOf("mode", {"horizontal_and_vertical", "horizontal", "vertical"}, 0);
    attributes_.flip_columns = mode != 2;
    attributes_.flip_rows = mode != 1;
    ranges_ = {{0, 1}};
  }
};

class RandomTranslation : public RandomWarp {
 public:
  explicit RandomTranslation(LayerOptions& options) : RandomWarp(options, WarpKind::kTranslate) {
    constexpr FactorRule kShares = {.min = -1, .max = 1};
    ranges_ = {ReadFactor(options, "height_factor", kShares),
               ReadFactor(options, "width_factor", kShares)};
    ReadFill(options);
  }
};

class RandomRotation : public RandomWarp {
 public:
  explicit RandomRotation(LayerOptions& options) : RandomWarp(options, WarpKind::kRotate) {
    ranges_ = {ReadFactor(options, "factor", {.min = -1, .max = 1, .list_may_exceed = true})};
    ReadFill(options);
  }
};

class RandomZoom : public RandomWarp {
 public:
  explicit RandomZoom(LayerOptions& options) : RandomWarp(options, WarpKind::kZoom) {
    constexpr FactorRule kFactors = {.min = -1, .max = 1, .above_min = true};
    ranges_ = {ReadFactor(options, "height_factor", kFactors)};
    if (!options["width_factor"].is_null()) {
      ranges_.push_back(ReadFactor(options, "width_factor", kFactors));
    }
    for (RandomUniformOp::Range& range : ranges_) range = {1 + range.low, 1 + range.high};
    ReadFill(options);
  }
};

// Crops a random window, at the same place in all images of a batch. In inference, it takes the
// largest centered window with the aspect ratio of the result, and resizes it to the result's size.
// If an image is not larger than the result along both axes, training does nearly the same as
// inference.
class RandomCrop : public LayerConfig {
 public:
  explicit RandomCrop(LayerOptions& options)
      : height_(options.RequiredInteger("height", kWindowExtents)),
        width_(options.RequiredInteger("width", kWindowExtents)),
        seed_(options.Seed()) {
    options.ExpectChannelsLast();
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectImages());
    const int64_t height = call.input_shape()[1], width = call.input_shape()[2];
    // The largest centered window with nearly the aspect ratio of the result.
    const int64_t window_height = std::max<int64_t>(1, std::min(height, width * height_ / width_));
    const int64_t window_width = std::max<int64_t>(1, std::min(width, height * width_ / height_));
    const int64_t top = (height - window_height) / 2, left = (width - window_width) / 2;
    if (height <= height_ || width <= width_) {
      // As Keras does, crop at that window's place, but with the result's size.
      return CropAndResize(call, top, left, std::min(height_, height - top),
                           std::min(width_, width - left));
    }
    // Keras 3.15 documents that inference resizes the window, but its code leaves the image
    // unchanged. Shoal resizes it.
    SHOAL_ASSIGN_OR_RETURN(const ValueId middle,
                           CropAndResize(call, top, left, window_height, window_width));
    auto random = std::make_shared<RandomUniformOp>();
    random->ranges = {{0, static_cast<double>(height - height_ + 1)},
                      {0, static_cast<double>(width - width_ + 1)}};
    random->whole = true;
    random->one_of_batch = true;
    random->layer_seed = call.RandomSeed(seed_);
    SHOAL_ASSIGN_OR_RETURN(const ValueId place, call.Add(std::move(random)));
    auto warp = std::make_shared<WarpOp>();
    warp->attributes.kind = WarpKind::kCrop;
    warp->height = height_;
    warp->width = width_;
    SHOAL_ASSIGN_OR_RETURN(const ValueId window,
                           call.Add(std::move(warp), {call.inputs()[0], place}));
    return call.Add(std::make_shared<ModeSwitchOp>(), {window, middle});
  }

 private:
  absl::StatusOr<ValueId> CropAndResize(LayerCall& call, int64_t top, int64_t left, int64_t height,
                                        int64_t width) const {
    const int64_t bottom = call.input_shape()[1] - top - height;
    const int64_t right = call.input_shape()[2] - left - width;
    ValueId x = call.inputs()[0];
    if (top + left + bottom + right > 0) {
      auto crop = std::make_shared<CropOp>();
      crop->margins = {.before = {top, left, 0}, .after = {bottom, right, 0}};
      SHOAL_ASSIGN_OR_RETURN(x, call.Add(std::move(crop), {x}));
    }
    if (height == height_ && width == width_) return x;
    auto resize = std::make_shared<ResizeOp>();
    resize->height = height_;
    resize->width = width_;
    resize->interpolation = ResizeOp::Interpolation::kBilinear;
    return call.Add(std::move(resize), {x});
  }

  const int64_t height_;
  const int64_t width_;
  const int64_t seed_;
};

}  // namespace

extern const LayerType kRandomFlipLayer = {
    "RandomFlip", LayerType::Inputs::kOne,
    "In training, mirrors every second image, more or less; `horizontal_and_vertical` both ways at "
    "once",
    ReadAs<RandomFlip>, LayerType::Integers::kAsNumbers};

extern const LayerType kRandomTranslationLayer = {
    "RandomTranslation", LayerType::Inputs::kOne, "In training, moves each image up, down or aside",
    ReadAs<RandomTranslation>, LayerType::Integers::kAsNumbers};

extern const LayerType kRandomRotationLayer = {
    "RandomRotation", LayerType::Inputs::kOne, "In training, turns each image about its middle",
    ReadAs<RandomRotation>, LayerType::Integers::kAsNumbers};

extern const LayerType kRandomZoomLayer = {
    "RandomZoom", LayerType::Inputs::kOne,
    "In training, stretches or shrinks each image about its middle", ReadAs<RandomZoom>,
    LayerType::Integers::kAsNumbers};

extern const LayerType kRandomCropLayer = {"RandomCrop", LayerType::Inputs::kOne,
                                           "In training, a window of the images, at one place for "
                                           "a batch; in inference the largest window "
                                           "of that shape in the middle, resized, as Keras "
                                           "describes it (Keras 3.15 leaves the image as it "
                                           "is)",
                                           ReadAs<RandomCrop>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
