#pragma once

#include <string>

namespace shoal {

// docs/metrics.md: the whole catalog, for people.
std::string MetricsDocument();

}  // namespace shoal
