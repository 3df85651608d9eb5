#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/json/json_node.h"

namespace shoal {

// The output of one call of a layer, as Functional models write it: ["conv", 0, 0].
struct TensorReference {
  std::string layer;
  int64_t call = 0;
  // Whether calls of nested models count from 0, as in Keras 3's inbound nodes. Everywhere else,
  // building a nested model counts as its call 0.
  bool calls_from_zero = false;
  JsonNode json;  // its place in the JSON
};

// Reads an element of inbound_nodes: the tensors that one call of a layer reads. Its form is Keras
// 2's [["conv", 0, 0, {}], ...] or Keras 3's {"args": [...], "kwargs": {...}}. Rejects arguments
// that are set and are not tensors.
absl::StatusOr<std::vector<TensorReference>> ReadInboundNode(const JsonNode& json);

// Reads input_layers or output_layers: one bare reference, or a list or object of references.
absl::StatusOr<std::vector<TensorReference>> ReadTensorReferences(const JsonNode& json);

}  // namespace shoal
