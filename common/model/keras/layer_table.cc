#include "common/model/keras/layer_table.h"

#include "common/model/keras/layer_builder.h"

// Every layer, a line each, sorted: class name, inputs that a call takes. ReadCLASS stands in
// keras/layers/.
#define SHOAL_KERAS_LAYERS(LAYER)     \
  LAYER(Activation, kOne)             \
  LAYER(Add, kSeveral)                \
  LAYER(AveragePooling2D, kOne)       \
  LAYER(Conv2D, kOne)                 \
  LAYER(Dense, kOne)                  \
  LAYER(Dropout, kOne)                \
  LAYER(Flatten, kOne)                \
  LAYER(GlobalAveragePooling2D, kOne) \
  LAYER(InputLayer, kNone)            \
  LAYER(MaxPooling2D, kOne)           \
  LAYER(ReLU, kOne)                   \
  LAYER(Rescaling, kOne)              \
  LAYER(Reshape, kOne)                \
  LAYER(Softmax, kOne)

namespace shoal {

#define SHOAL_DECLARE_LAYER(NAME, INPUTS) absl::StatusOr<ValueId> Read##NAME(LayerBuilder& layer);
SHOAL_KERAS_LAYERS(SHOAL_DECLARE_LAYER)
#undef SHOAL_DECLARE_LAYER

namespace {

#define SHOAL_LAYER_LINE(NAME, INPUTS) {#NAME, LayerType::Inputs::INPUTS, Read##NAME},
constexpr LayerType kLayerTypes[] = {SHOAL_KERAS_LAYERS(SHOAL_LAYER_LINE)};
#undef SHOAL_LAYER_LINE

}  // namespace

const LayerType* FindLayerType(const std::string& class_name) {
  for (const LayerType& type : kLayerTypes) {
    if (class_name == type.class_name) return &type;
  }
  return nullptr;
}

std::vector<std::string> LayerTypeNames() {
  std::vector<std::string> names;
  for (const LayerType& type : kLayerTypes) names.push_back(type.class_name);
  return names;
}

}  // namespace shoal
