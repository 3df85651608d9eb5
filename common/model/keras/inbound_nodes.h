#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/keras/json_node.h"

namespace shoal {

// The output of one call of a layer, as Functional models name it: ["conv", 0, 0].
struct TensorReference {
  std::string layer;
  int64_t call = 0;
  // Whether calls of nested models are counted from 0, as in Keras 3's inbound nodes. Everywhere
  // else such a model's building counts as a call of its own, number 0.
  bool calls_from_zero = false;
  JsonNode json;  // where it stands
};

// The tensors that one call of a layer reads, an element of inbound_nodes, in Keras 2's form
// [["conv", 0, 0, {}], ...] or Keras 3's {"args": [...], "kwargs": {...}}. Arguments that are no
// tensors are refused when they are set.
absl::StatusOr<std::vector<TensorReference>> ReadInboundNode(const JsonNode& json);

// input_layers or output_layers: one reference bare, a list, or an object of references.
absl::StatusOr<std::vector<TensorReference>> ReadTensorReferences(const JsonNode& json);

}  // namespace shoal
