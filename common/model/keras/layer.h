#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/model/graph.h"
#include "common/model/keras/json_node.h"

namespace shoal {

struct LayerType;

// What holds for every layer of a model.
struct ModelTraits {
  bool keras2 = false;    // written by Keras 1 or 2, some of whose options mean something else
  bool trainable = true;  // false: the model is frozen as a whole
};

// One layer of a model under construction: its place in the JSON, and what its calls share.
struct Layer {
  const LayerType* type = nullptr;  // in the layer table
  std::string name;
  JsonNode json;    // {"class_name": ..., "config": ...}
  JsonNode config;  // of the layer
  ModelTraits traits;
  bool trainable = true;
  int calls = 0;
  std::map<std::string, ValueId> variables =
      {};                   // by name within the layer; made by the first call
  Shape output_shape = {};  // of the first call
  int64_t parameters = 0;
};

// Reads what all layers have in common: class, name, dtype, trainable.
absl::StatusOr<Layer> ReadLayer(const JsonNode& json, const ModelTraits& traits);

// Calls `layer` on `inputs`: appends its nodes to `graph`, and its variables when this is its first
// call. Returns its output.
absl::StatusOr<ValueId> CallLayer(Layer& layer, const std::vector<ValueId>& inputs, Graph* graph);

// What is wrong with `layer` whatever the shape of its input, where that is not known because a
// layer before it could not be read.
absl::Status CheckWithoutInput(const Layer& layer);

// Extents of a batch as Keras writes them, [null, 28, 28, 1]: the first is the batch whatever its
// number, all others are known.
absl::StatusOr<Shape> ReadBatchShape(const JsonNode& json);

// That a dtype, as string or as policy object, is float32.
absl::Status CheckDtype(const JsonNode& dtype);

}  // namespace shoal
