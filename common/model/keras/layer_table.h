#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/model/keras/layer.h"
#include "common/model/keras/options/layer_options.h"

namespace shoal {

// A Keras layer class that Shoal knows.
struct LayerType {
  // The inputs of a call of the layer.
  enum class Inputs {
    kOfModel,  // an input of the model around the layer: InputLayer
    kOne,
    kSeveral,  // one or more
    kAny,      // decided by the layer itself: a model
  };

  // How the layer treats inputs of whole numbers (Value::whole_numbers), which are integers in
  // Keras and float32 here.
  enum class Integers {
    kComputed,   // Keras computes in their dtype, where uint8 has 200 + 100 = 44; accepts only
                 // int32 and int64
    kRounded,    // Keras turns the results back into integers; rejects them
    kAsNumbers,  // moves or chooses them, or makes floats first; the results are the same
  };

  const char* class_name;
  Inputs inputs;
  const char* documentation;  // its line in docs/layers.md
  std::unique_ptr<LayerConfig> (*read)(LayerOptions& options);
  Integers integers = Integers::kComputed;
};

// LayerType::read of a layer whose LayerConfig is `Config`.
template <typename Config>
std::unique_ptr<LayerConfig> ReadAs(LayerOptions& options) {
  return std::make_unique<Config>(options);
}

// Returns the type with this Keras class name, or nullptr.
const LayerType* FindLayerType(const std::string& class_name);

// All types, sorted by name.
const std::vector<const LayerType*>& LayerTypes();

}  // namespace shoal
