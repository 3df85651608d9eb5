#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"

namespace shoal {

// One line of a model summary.
struct LayerSummary {
  std::string name;        // "conv2d"
  std::string class_name;  // "Conv2D"
  Shape output_shape;
  int64_t parameters = 0;
  // The layer's inputs in a Functional model: "conv2d[0][0]" is output 0 of the first call of
  // conv2d.
  std::vector<std::string> connected_to;
};

struct KerasModel {
  std::string name;        // "sequential"
  std::string class_name;  // "Sequential" or "Functional"
  Graph graph;
  std::vector<LayerSummary> layers;
};

// Reads the text of Keras 2's or Keras 3's model.to_json(), Sequential or Functional. Errors name
// the JSON path ("$.config.layers[3].config.padding"), the value and the known choices. Returns
// kInvalidArgument if the input is not a model. Returns kUnimplemented, with a list of the choices,
// for a layer or option that Shoal lacks.
absl::StatusOr<KerasModel> ParseKerasModel(const std::string& json_text);

}  // namespace shoal
