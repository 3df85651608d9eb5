#include "common/model/keras/layer_table.h"

#include <cstddef>
#include <nlohmann/json.hpp>

#include "common/model/keras_layers.h"

// All layers, sorted, one on each line. kCLASSLayer is defined in keras/layers/; the models
// Functional and Sequential, which may be layers, in keras/.
#define SHOAL_KERAS_LAYERS(LAYER) \
  LAYER(Activation)               \
  LAYER(ActivityRegularization)   \
  LAYER(Add)                      \
  LAYER(Average)                  \
  LAYER(AveragePooling1D)         \
  LAYER(AveragePooling2D)         \
  LAYER(BatchNormalization)       \
  LAYER(Concatenate)              \
  LAYER(Conv1D)                   \
  LAYER(Conv2D)                   \
  LAYER(Conv2DTranspose)          \
  LAYER(Cropping2D)               \
  LAYER(Dense)                    \
  LAYER(DepthwiseConv1D)          \
  LAYER(DepthwiseConv2D)          \
  LAYER(Dropout)                  \
  LAYER(ELU)                      \
  LAYER(Embedding)                \
  LAYER(Flatten)                  \
  LAYER(Functional)               \
  LAYER(GlobalAveragePooling1D)   \
  LAYER(GlobalAveragePooling2D)   \
  LAYER(GlobalMaxPooling1D)       \
  LAYER(GlobalMaxPooling2D)       \
  LAYER(InputLayer)               \
  LAYER(LayerNormalization)       \
  LAYER(LeakyReLU)                \
  LAYER(MaxPooling1D)             \
  LAYER(MaxPooling2D)             \
  LAYER(Maximum)                  \
  LAYER(Minimum)                  \
  LAYER(Multiply)                 \
  LAYER(Normalization)            \
  LAYER(PReLU)                    \
  LAYER(RandomBrightness)         \
  LAYER(RandomContrast)           \
  LAYER(RandomCrop)               \
  LAYER(RandomFlip)               \
  LAYER(RandomRotation)           \
  LAYER(RandomTranslation)        \
  LAYER(RandomZoom)               \
  LAYER(ReLU)                     \
  LAYER(Rescaling)                \
  LAYER(Reshape)                  \
  LAYER(Resizing)                 \
  LAYER(SeparableConv1D)          \
  LAYER(SeparableConv2D)          \
  LAYER(Sequential)               \
  LAYER(Softmax)                  \
  LAYER(SpatialDropout1D)         \
  LAYER(SpatialDropout2D)         \
  LAYER(Subtract)                 \
  LAYER(UpSampling2D)             \
  LAYER(ZeroPadding2D)

namespace shoal {

#define SHOAL_DECLARE_LAYER(NAME) extern const LayerType k##NAME##Layer;
SHOAL_KERAS_LAYERS(SHOAL_DECLARE_LAYER)
#undef SHOAL_DECLARE_LAYER

const std::vector<const LayerType*>& LayerTypes() {
#define SHOAL_LAYER_LINE(NAME) &k##NAME##Layer,
  static const auto& types =
      *new std::vector<const LayerType*>{SHOAL_KERAS_LAYERS(SHOAL_LAYER_LINE)};
#undef SHOAL_LAYER_LINE
  return types;
}

const LayerType* FindLayerType(const std::string& class_name) {
  for (const LayerType* type : LayerTypes()) {
    if (class_name == type->class_name) return type;
  }
  return nullptr;
}

namespace {

// The options that a layer reads if none is set, without those common to all layers.
std::vector<std::string> OptionNames(const LayerType& type) {
  const nlohmann::json empty = {{"config", nlohmann::json::object()}};
  JsonErrors errors("");
  LayerOptions options({.json = JsonNode(empty),
                        .class_name = type.class_name,
                        .name = "",
                        .is_input = type.inputs == LayerType::Inputs::kOfModel},
                       &errors);
  const auto common = static_cast<std::ptrdiff_t>(options.known().size());
  type.read(options);
  return {options.known().begin() + common, options.known().end()};
}

}  // namespace

std::vector<KerasLayerDescription> DescribeKerasLayers() {
  std::vector<KerasLayerDescription> layers;
  for (const LayerType* type : LayerTypes()) {
    layers.push_back({type->class_name, type->documentation, OptionNames(*type)});
  }
  return layers;
}

}  // namespace shoal
