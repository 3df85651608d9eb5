#pragma once

#include <string>
#include <vector>

namespace shoal {

// What models may be made of, for people: docs/layers.md.

struct KerasLayerDescription {
  std::string class_name;
  std::string documentation;         // a line
  std::vector<std::string> options;  // of its config, but those that all layers have
};

// Sorted by name.
std::vector<KerasLayerDescription> DescribeKerasLayers();

// Names by which an option can ask for an activation or an initializer, sorted.
std::vector<std::string> KerasActivationNames();
std::vector<std::string> KerasInitializerNames();

}  // namespace shoal
