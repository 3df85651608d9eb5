#pragma once

#include <string>

namespace shoal {

// Numbers as people read them.

// "9 s", "1:12", "2:03:04".
std::string FormatDuration(double seconds);

// Four significant digits, as losses and metrics are shown: "0.3121", "12.35", "nan".
std::string FormatNumber(double value);

// A rate or a count with thousands apart: "12,345".
std::string FormatCount(double value);

}  // namespace shoal
