#pragma once

#include <string>

namespace shoal {

// Formats numbers for people.

// Formats a duration: "9 s", "1:12", "2:03:04".
std::string FormatDuration(double seconds);

// Formats losses and metrics with four significant digits: "0.3121", "12.35", "nan".
std::string FormatNumber(double value);

// Formats a rate or a count with a thousands separator: "12,345".
std::string FormatCount(double value);

}  // namespace shoal
