#include "cli/layers_document.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/model/keras_layers.h"

namespace shoal {
namespace {

constexpr char kIntroduction[] =
    "# Layers\n"
    "\n"
    "<!-- Made by `shoal model layers`; a test compares. -->\n"
    "\n"
    "What a Keras model may be made of. All layers have the options `name`, `trainable` and "
    "`dtype`, which must be float32 (mixed policies are refused: all is\n"
    "computed in float32). An option that is not listed must be absent or null; anything else is "
    "refused by name, with its path in the model. Images are\n"
    "(batch, height, width, channels): `data_format` must be `channels_last`. Models may be "
    "nested, "
    "layers and models shared, and inputs several; a model has\n"
    "one output.\n";

std::string List(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  return absl::StrCat("`", absl::StrJoin(names, "`, `"), "`");
}

}  // namespace

std::string LayersDocument() {
  std::string text =
      absl::StrCat(kIntroduction, "\n| layer | what it does | options |\n|---|---|---|\n");
  for (const KerasLayerDescription& layer : DescribeKerasLayers()) {
    absl::StrAppend(&text, "| `", layer.class_name, "` | ", layer.documentation, " | ",
                    List(layer.options), layer.options.empty() ? "|\n" : " |\n");
  }
  absl::StrAppend(&text, "\n## Activations\n\n", List(KerasActivationNames()), "\n");
  absl::StrAppend(&text, "\n## Initializers\n\n", List(KerasInitializerNames()), "\n");
  return text;
}

}  // namespace shoal
