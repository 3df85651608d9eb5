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
  // What it reads, for Functional models: "conv2d[0][0]" is output 0 of the first call of conv2d.
  std::vector<std::string> connected_to;
};

struct KerasModel {
  std::string name;        // "sequential"
  std::string class_name;  // "Sequential" or "Functional"
  Graph graph;
  std::vector<LayerSummary> layers;
};

// Reads the text of Keras 2's or Keras 3's model.to_json(), Sequential or Functional. Errors name
// the JSON path ("$.config.layers[3].config.padding"), the value, and what is known. Input that is
// not a model is kInvalidArgument; a layer or option that Shoal lacks is kUnimplemented, which
// lists what there is.
absl::StatusOr<KerasModel> ParseKerasModel(const std::string& json_text);

}  // namespace shoal
