#pragma once

#include <string>

namespace shoal {

// Returns the text of docs/metrics.md: the whole catalog, for people.
std::string MetricsDocument();

}  // namespace shoal
