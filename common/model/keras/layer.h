#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/model/graph.h"
#include "common/model/keras/json_node.h"

namespace shoal {

class LayerCall;
struct LayerType;

// A layer's options, read and found right whatever its input will be (LayerOptions). Called on
// values once or, where the layer is shared, several times. One class a layer, in keras/layers/;
// nested models are such a class too.
class LayerConfig {
 public:
  virtual ~LayerConfig() = default;

  // Appends one call of the layer to the graph; its output.
  virtual absl::StatusOr<ValueId> Call(LayerCall& call) = 0;
};

// What holds for every layer of a model.
struct ModelTraits {
  bool keras2 = false;  // written by Keras 1 or 2, some of whose options mean something else
  // False: the outer model has nothing to train, and its layers compute as they would otherwise.
  bool optimized = true;
  std::string path = {};  // before the names of its layers: "inner/"; empty for the outer model

  bool nested() const { return !path.empty(); }
};

// A graph while layers are being called.
struct GraphInProgress {
  Graph graph;
  int64_t calls = 0;  // of layers, those of nested models included
  std::set<std::string> variable_names = {};
};

// One layer of a model: its place in the JSON, its options, and what its calls share.
struct Layer {
  const LayerType* type = nullptr;  // in the layer table
  std::string name;
  std::string path;  // name after those of the nested models around it: "inner/conv2d"
  JsonNode json;     // {"class_name": ..., "config": ...}
  bool trainable = true;
  bool optimized = true;                                // ModelTraits::optimized
  ComputeDtype compute_dtype = ComputeDtype::kFloat32;  // of what its calls compute
  Regularizer activity_regularizer = {};                // of each call's output
  std::unique_ptr<LayerConfig> config = nullptr;
  int calls = 0;
  std::map<std::string, ValueId> variables =
      {};                   // by name within the layer; made by the first call
  Shape output_shape = {};  // of the first call
  int64_t parameters = 0;
};

// Reads a layer: its class, what all layers have in common, and its options. Errors say all that is
// wrong with them.
absl::StatusOr<Layer> ReadLayer(const JsonNode& json, const ModelTraits& traits);

// The same where class and name are known. Of the outer model the name is empty: it is left out of
// the paths of its layers.
absl::StatusOr<Layer> ReadLayer(const JsonNode& json, const LayerType& type, std::string name,
                                const ModelTraits& traits);

// Calls `layer` on `inputs`: appends its nodes, and its variables when this is its first call.
// Returns its output.
absl::StatusOr<ValueId> CallLayer(Layer& layer, const std::vector<ValueId>& inputs,
                                  GraphInProgress* graph);

}  // namespace shoal
