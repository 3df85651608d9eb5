#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"

namespace shoal {

class LayerBuilder;

// A Keras layer class that Shoal knows.
struct LayerType {
  enum class Inputs { kNone, kOne, kSeveral };

  const char* class_name;
  Inputs inputs;
  // Appends one call of the layer to the graph; its output.
  absl::StatusOr<ValueId> (*read)(LayerBuilder& layer);
};

// The type of that Keras class name, or nullptr.
const LayerType* FindLayerType(const std::string& class_name);

// Names of all types, sorted.
std::vector<std::string> LayerTypeNames();

}  // namespace shoal
