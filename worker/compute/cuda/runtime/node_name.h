#pragma once

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace shoal::cuda {

// The node of the model that a call is for, for messages. Empty if there is none.
struct NodeName {
  std::string_view op = {};     // "DepthwiseConv2D"
  std::string_view layer = {};  // "block_1/depthwise"
};

// Describes a call, whose text begins with the function's name: "cudaMalloc of DepthwiseConv2D in
// the layer conv".
inline std::string CallText(std::string_view call, const NodeName& node) {
  std::string text(call.substr(0, call.find('(')));
  if (!node.op.empty()) absl::StrAppend(&text, " of ", std::string(node.op));
  if (!node.layer.empty()) absl::StrAppend(&text, " in the layer ", std::string(node.layer));
  return text;
}

}  // namespace shoal::cuda
