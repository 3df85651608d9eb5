#pragma once

#include <string>
#include <vector>

namespace shoal {

// A layer that models may use, described for docs/layers.md.

struct KerasLayerDescription {
  std::string class_name;
  std::string documentation;         // one line
  std::vector<std::string> options;  // of its config, without those common to all layers
};

// Sorted by name.
std::vector<KerasLayerDescription> DescribeKerasLayers();

// The names of activations and of initializers that an option can give, sorted.
std::vector<std::string> KerasActivationNames();
std::vector<std::string> KerasInitializerNames();

}  // namespace shoal
