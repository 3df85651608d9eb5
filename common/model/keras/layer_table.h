#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/model/keras/layer.h"
#include "common/model/keras/layer_options.h"

namespace shoal {

// A Keras layer class that Shoal knows.
struct LayerType {
  // What a call of the layer takes.
  enum class Inputs {
    kOfModel,  // an input of the model that the layer is in: InputLayer
    kOne,
    kSeveral,  // one or more
    kAny,      // what the layer itself says: a model
  };

  // What becomes of inputs of whole numbers (Value::whole_numbers), which are integers in Keras and
  // float32 here.
  enum class Integers {
    kComputed,   // Keras computes in their dtype, in which uint8 has 200 + 100 = 44: taken where it
                 // is int32 or int64 alone
    kRounded,    // Keras makes integers again of what it computes: refused
    kAsNumbers,  // moved, chosen, or made floats first: the same numbers here
  };

  const char* class_name;
  Inputs inputs;
  const char* documentation;  // what it does, in a line of docs/layers.md
  std::unique_ptr<LayerConfig> (*read)(LayerOptions& options);
  Integers integers = Integers::kComputed;
};

// LayerType::read of a layer whose LayerConfig is `Config`.
template <typename Config>
std::unique_ptr<LayerConfig> ReadAs(LayerOptions& options) {
  return std::make_unique<Config>(options);
}

// The type of that Keras class name, or nullptr.
const LayerType* FindLayerType(const std::string& class_name);

// All types, sorted by name.
const std::vector<const LayerType*>& LayerTypes();

}  // namespace shoal
