#pragma once

#include <string>

namespace shoal {

// Returns the text of docs/layers.md: everything that a model may contain, for people.
std::string LayersDocument();

}  // namespace shoal
