#include "cli/display/number_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace shoal {

std::string FormatDuration(double seconds) {
  if (!(seconds < 1e9)) return "very long";
  const auto whole = std::llround(std::max(0.0, seconds));
  char text[48];
  if (whole < 60) {
    std::snprintf(text, sizeof(text), "%d s", static_cast<int>(whole));
  } else if (whole < 3600) {
    std::snprintf(text, sizeof(text), "%d:%02d", static_cast<int>(whole / 60),
                  static_cast<int>(whole % 60));
  } else {
    std::snprintf(text, sizeof(text), "%d:%02d:%02d", static_cast<int>(whole / 3600),
                  static_cast<int>(whole / 60 % 60), static_cast<int>(whole % 60));
  }
  return text;
}

std::string FormatNumber(double value) {
  char text[32];
  const double size = std::fabs(value);
  const bool plain = value == 0 || (size >= 1e-3 && size < 1e5);
  const int decimals = size >= 1000 ? 1 : size >= 100 ? 2 : size >= 10 ? 3 : 4;
  std::snprintf(text, sizeof(text), plain ? "%.*f" : "%.*e", plain ? decimals : 3, value);
  return std::isnan(value) ? "nan" : text;
}

std::string FormatCount(double value) {
  char digits[64];
  std::snprintf(digits, sizeof(digits), "%.0f", value);
  if (!std::isfinite(value)) return digits;
  const std::string plain = digits;
  std::string text;
  for (size_t i = 0; i < plain.size(); ++i) {
    const bool group_begins = i > 0 && plain[i - 1] != '-' && (plain.size() - i) % 3 == 0;
    if (group_begins) text += ',';
    text += plain[i];
  }
  return text;
}

}  // namespace shoal
