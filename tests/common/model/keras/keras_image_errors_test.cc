// Layers that augment, normalize, look up and resize.
#include "tests/common/model/keras/keras_faults.h"

namespace shoal {
namespace {

TEST(KerasImageErrorsTest, Augmentation) {
  const std::string path = "$.config.layers[1].config.";
  const auto expect = [&](const Json& layer, const std::string& option, const Json& value,
                          absl::StatusCode code, const std::vector<std::string>& parts) {
    const std::string pointer = "/config/layers/1/config/" + option;
    ExpectErrors(SequentialJson({nullptr, 6, 6, 3}, {layer}),
                 {{pointer.c_str(), value, code, parts}});
  };
  const Json flip = LayerJson("RandomFlip", "flip", {{"mode", "vertical"}, {"seed", 1}});
  expect(flip, "mode", "sideways", kInvalid, {path + "mode", "horizontal_and_vertical"});
  expect(flip, "seed", 0.5, kInvalid, {path + "seed"});
  expect(flip, "data_format", "channels_first", kLacking, {path + "data_format"});
  expect(flip, "factor", 0.5, kLacking, {path + "factor"});

  const Json move =
      LayerJson("RandomTranslation", "move", {{"height_factor", 1}, {"width_factor", {-1, 0.5}}});
  expect(move, "height_factor", nullptr, kInvalid, {path + "height_factor"});
  expect(move, "height_factor", 1.5, kInvalid, {path + "height_factor: 1.5 ", "-1 to 1"});
  expect(move, "width_factor", {0, -1.5}, kInvalid, {path + "width_factor: [0,-1.5] "});
  expect(move, "width_factor", {0.5}, kInvalid, {path + "width_factor", "two numbers, got [0.5]"});
  expect(move, "width_factor", {0.5, "a"}, kInvalid, {path + "width_factor[1]"});
  expect(move, "fill_mode", "mirror", kInvalid, {path + "fill_mode", "\"reflect\" or \"wrap\""});
  expect(move, "interpolation", "bicubic", kLacking, {path + "interpolation"});

  const Json turn = LayerJson("RandomRotation", "turn", {{"factor", {-2, 2}}});
  expect(turn, "factor", {1.5, 2}, kInvalid, {path + "factor: [1.5,2] ", "-1 to 1"});
  const Json zoom =
      LayerJson("RandomZoom", "zoom", {{"height_factor", 1}, {"width_factor", nullptr}});
  expect(zoom, "height_factor", -1, kInvalid, {path + "height_factor: -1 "});
  expect(zoom, "width_factor", {-1, 0}, kInvalid, {path + "width_factor", "above -1, up to 1"});

  const Json crop = LayerJson("RandomCrop", "crop", {{"height", 4}, {"width", 3}});
  expect(crop, "height", 0, kInvalid, {path + "height"});
  expect(crop, "width", nullptr, kInvalid, {path + "width"});

  const Json contrast = LayerJson("RandomContrast", "contrast", {{"factor", {0.1, 0.2}}});
  expect(contrast, "factor", -0.1, kInvalid, {path + "factor: -0.1 ", "0 to 1"});
  expect(contrast, "factor", {-0.5, 0.2}, kInvalid, {path + "factor"});
  expect(contrast, "value_range", 255, kInvalid, {path + "value_range", "two numbers"});
  const Json brightness = LayerJson("RandomBrightness", "light", {{"factor", 1}});
  expect(brightness, "factor", 1.5, kInvalid, {path + "factor"});
  // As places in an image these were no numbers.
  expect(brightness, "factor", {-1e300, 1}, kInvalid,
         {path + "factor[0]: -1e+300 ", "-1e+09 to 1e+09"});
  expect(turn, "factor", {-1, 1e300}, kInvalid, {path + "factor[1]", "1e+09"});
  expect(contrast, "factor", {0.5, 1e300}, kInvalid, {path + "factor[1]"});
  expect(contrast, "value_range", {0, 1e300}, kInvalid, {path + "value_range[1]"});
  expect(brightness, "value_range", {1}, kInvalid, {path + "value_range"});

  for (const Json& layer : {flip, move, turn, zoom, crop, contrast, brightness}) {
    ExpectError(SequentialJson({nullptr, 6, 6}, {layer}).dump(), kInvalid,
                {"$.config.layers[1]", "(batch, height, width, channels)", "(None, 6, 6)"});
  }
}

TEST(KerasImageErrorsTest, NormalizationEmbeddingAndResizing) {
  const std::string at = "/config/layers/1/config/";
  const std::string path = "$.config.layers[1].config.";
  const auto expect = [&](const Json& shape, const Json& layer, const std::string& option,
                          const Json& value, absl::StatusCode code,
                          const std::vector<std::string>& parts) {
    const std::string pointer = at + option;
    ExpectErrors(SequentialJson(shape, {layer}), {{pointer.c_str(), value, code, parts}});
  };
  const Json image = {nullptr, 6, 6, 3};
  const Json norm = LayerJson("BatchNormalization", "norm", {{"axis", {3}}});
  expect(image, norm, "momentum", 1.5, kInvalid, {path + "momentum: is 1.5"});
  expect(image, norm, "epsilon", -1, kInvalid, {path + "epsilon: is -1"});
  expect(image, norm, "axis", 1, kLacking, {path + "axis", "(None, 6, 6, 3)"});
  expect(image, norm, "axis", {1, 2}, kLacking, {path + "axis: "});
  expect(image, norm, "synchronized", true, kLacking, {path + "synchronized", "own batch"});
  expect(image, norm, "renorm", true, kLacking, {path + "renorm", "renormalisation"});
  expect(image, norm, "beta_initializer", "onse", kLacking, {path + "beta_initializer"});

  const Json rows = LayerJson("LayerNormalization", "rows", {{"axis", {-1}}});
  expect(image, rows, "axis", 2, kLacking, {path + "axis"});
  expect(image, rows, "epsilon", -0.5, kInvalid, {path + "epsilon: is -0.5"});
  expect(image, rows, "rms_scaling", true, kLacking, {path + "rms_scaling"});

  const Json ids = {nullptr, 4};
  const Json embedding = LayerJson("Embedding", "table", {{"input_dim", 9}, {"output_dim", 2}});
  expect(ids, embedding, "input_dim", 16777217, kLacking, {path + "input_dim", "2^24"});
  expect(ids, embedding, "output_dim", 0, kInvalid, {path + "output_dim"});
  expect(ids, embedding, "mask_zero", true, kLacking, {path + "mask_zero", "no masks"});

  const Json resizing = LayerJson("Resizing", "size", {{"height", 4}, {"width", 5}});
  expect(image, resizing, "height", nullptr, kInvalid, {path + "height"});
  expect(image, resizing, "interpolation", "bicubic", kLacking,
         {path + "interpolation", "\"bicubic\"", "bilinear, nearest"});
  expect(image, resizing, "antialias", true, kLacking, {path + "antialias"});
  expect(image, LayerJson("UpSampling2D", "up", Json::object()), "size", {2, 0}, kInvalid,
         {path + "size[1]"});

  const Json depthwise = LayerJson("DepthwiseConv2D", "deep", {{"kernel_size", 3}});
  expect(image, depthwise, "depth_multiplier", 0, kInvalid, {path + "depth_multiplier"});
  expect(image, depthwise, "groups", 3, kLacking, {path + "groups"});
  expect(image, depthwise, "kernel_size", 7, kInvalid, {"layer \"deep\"", "(None, 6, 6, 3)"});
  const Json separable = LayerJson("SeparableConv2D", "deep", {{"kernel_size", 3}, {"filters", 2}});
  expect(image, separable, "filters", nullptr, kInvalid, {path + "filters"});
  expect(image, separable, "pointwise_initializer", "x", kLacking,
         {path + "pointwise_initializer"});
  const Json transposed = LayerJson("Conv2DTranspose", "up", {{"kernel_size", 3}, {"filters", 2}});
  expect(image, transposed, "output_padding", {1, 1}, kLacking, {path + "output_padding"});
  expect(image, transposed, "strides", {1, 1, 1}, kInvalid, {path + "strides"});

  const Json given = LayerJson("Normalization", "norm",
                               {{"mean", {1, 2, 3}}, {"variance", {1, 4, 9}}, {"axis", {-1}}});
  expect(image, given, "variance", {1, 4}, kInvalid, {path + "variance", "2 values", "mean has 3"});
  expect(image, given, "variance", {1, 4, -9}, kInvalid, {path + "variance", "-9 is negative"});
  expect(image, given, "variance", nullptr, kInvalid, {path + "variance", "a number"});
  expect(image, given, "mean", {1, "x", 3}, kInvalid, {path + "mean[1]"});
  expect(image, given, "axis", 1, kLacking, {path + "axis", "last axis"});
  const Json prelu = LayerJson("PReLU", "prelu", {{"shared_axes", {1, 2}}});
  // Keras's axis 0 is the last, -3 the first behind the batch.
  expect(image, prelu, "shared_axes", {4}, kInvalid, {path + "shared_axes[0]: 4 "});
  expect(image, prelu, "shared_axes", {0, -3}, kInvalid, {path + "shared_axes[1]: -3 "});
  expect(image, prelu, "shared_axes", 1, kInvalid, {path + "shared_axes: "});
}

}  // namespace
}  // namespace shoal
