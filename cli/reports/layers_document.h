#pragma once

#include <string>

namespace shoal {

// docs/layers.md: all that models may be made of, for people.
std::string LayersDocument();

}  // namespace shoal
