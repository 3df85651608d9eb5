#include "cli/reports/layers_document.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/model/keras_layers.h"

namespace shoal {
namespace {

constexpr char kLayersIntroduction[] =
    "# Layers\n"
    "\n"
    "<!-- Made by `shoal model layers`; a test compares. -->\n"
    "\n"
    "The layers and options that a Keras model may have. All layers have the options `name`, "
    "`trainable`, `dtype` "
    "and `activity_regularizer`, which adds to the loss what the layer puts\n"
    "out (also in evaluation, an example's part to its own loss). An option that is not listed "
    "must "
    "be absent or null; anything else is rejected by name, with its\n"
    "path in the model. Of those that are listed, some must be what they are by default: [those "
    "that "
    "are rejected, and what to do instead](keras-parity.md#options-that-are-rejected).\n"
    "Images are (batch, height, width, channels): `data_format` must be "
    "`channels_last`. Models may be nested, layers and models shared, and\n"
    "inputs several; a model has one output.\n"
    "\n"
    "A `dtype` may be `float32` or the policy `mixed_bfloat16` or `mixed_float16`, another for "
    "each "
    "layer; variables are float32 under each of them. Workers on [GPUs](gpu.md) compute\n"
    "`mixed_bfloat16` in bfloat16 and `mixed_float16` in float16, with a loss scale.\n"
    "Some CPUs compute `mixed_bfloat16` [in bfloat16](operations.md#bfloat16-on-cpus), too. "
    "A worker computes the types that it lacks in float32, which is more exact, and says so.\n"
    "An `InputLayer` may be of whole "
    "numbers, such as `int32` or `uint8`: data that are not, or that the\n"
    "dtype cannot hold, are rejected by file and example. They are held as float32, which is exact "
    "up to 2^24; layers of which Keras makes integers again\n"
    "(bilinear `Resizing`, `LayerNormalization`) need a `Rescaling` before them. So do, on "
    "integers "
    "but `int32` and `int64`, those that Keras computes in the input's own dtype,\n"
    "which wraps around where it ends: `Add`, `Subtract`, `Multiply` and `Average` of two such "
    "inputs, `AveragePooling1D` and `AveragePooling2D`, `ReLU`, `PReLU`, `Softmax`,\n"
    "`Activation`, and an `activity_regularizer` of whole numbers. `Rescaling(1.0)` leaves the "
    "numbers as they are; an input of `float32` in the model does as well.\n";

constexpr char kOfActivations[] =
    "\n"
    "`sparsemax` is what Keras computes by that name, which is not the function of the paper that "
    "Keras refers to (Martins and Astudillo, 2016): where more than one element\n"
    "is above the threshold, a row does not sum to 1. `threshold` alone of Keras's activations is "
    "rejected: it takes two numbers, a model file gives the name alone, and\n"
    "Keras itself fails when it computes such a model. A `ReLU` layer with `threshold` is that "
    "function with 0 below.\n";

std::string List(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  return absl::StrCat("`", absl::StrJoin(names, "`, `"), "`");
}

}  // namespace

std::string LayersDocument() {
  std::string text =
      absl::StrCat(kLayersIntroduction, "\n| layer | what it does | options |\n|---|---|---|\n");
  for (const KerasLayerDescription& layer : DescribeKerasLayers()) {
    absl::StrAppend(&text, "| `", layer.class_name, "` | ", layer.documentation, " | ",
                    List(layer.options), layer.options.empty() ? "|\n" : " |\n");
  }
  absl::StrAppend(&text, "\n## Activations\n\n", List(KerasActivationNames()), "\n",
                  kOfActivations);
  absl::StrAppend(&text, "\n## Initializers\n\n", List(KerasInitializerNames()), "\n");
  return text;
}

}  // namespace shoal
