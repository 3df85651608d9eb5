#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/json/json_node.h"
#include "common/model/graph.h"
#include "common/model/keras/options/model_traits.h"

namespace shoal {

class LayerCall;
struct LayerType;

// A layer with its options, already read and checked independently of its input (LayerOptions). A
// shared layer is called several times, any other layer once. Each layer is one class, in
// keras/layers/. Nested models have such classes too.
class LayerConfig {
 public:
  virtual ~LayerConfig() = default;

  // Appends one call of the layer to the graph and returns its output.
  virtual absl::StatusOr<ValueId> Call(LayerCall& call) = 0;
};

// The state of a graph while layers are being called.
struct GraphInProgress {
  Graph graph;
  int64_t calls = 0;  // calls of layers so far, including those in nested models
  std::set<std::string> variable_names = {};
};

// One layer of a model: its place in the JSON, its options, and the state that its calls share.
struct Layer {
  const LayerType* type = nullptr;  // in the layer table
  std::string name;
  std::string path;  // name with the nested models around it: "inner/conv2d"
  JsonNode json;     // {"class_name": ..., "config": ...}
  bool trainable = true;
  bool optimized = true;                                // ModelTraits::optimized
  ComputeDtype compute_dtype = ComputeDtype::kFloat32;  // of its calls
  Regularizer activity_regularizer = {};                // for each call's output
  std::unique_ptr<LayerConfig> config = nullptr;
  int calls = 0;
  std::map<std::string, ValueId> variables = {};  // by name in the layer; the first call adds them
  Shape output_shape = {};                        // of the first call
  int64_t parameters = 0;
};

// Reads a layer: its class, the options that all layers share, and its own options. The error lists
// all problems in them.
absl::StatusOr<Layer> ReadLayer(const JsonNode& json, const ModelTraits& traits);

// The same for a known class and name. The name of the outer model is empty, because its layers'
// paths omit it.
absl::StatusOr<Layer> ReadLayer(const JsonNode& json, const LayerType& type, std::string name,
                                const ModelTraits& traits);

// Calls `layer` on `inputs` and returns its output. Appends its nodes, and at its first call its
// variables.
absl::StatusOr<ValueId> CallLayer(Layer& layer, const std::vector<ValueId>& inputs,
                                  GraphInProgress* graph);

}  // namespace shoal
