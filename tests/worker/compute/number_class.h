#pragma once

#include <cmath>
#include <string>

namespace shoal {

// Returns what kind of number it is, for the comparison of backends.
inline std::string ClassOf(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return "finite";
}

}  // namespace shoal
