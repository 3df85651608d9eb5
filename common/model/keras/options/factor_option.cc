#include "common/model/keras/options/factor_option.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

using Range = RandomUniformOp::Range;

// A larger factor leaves nothing of an image, and positions in the image become not-a-number.
constexpr double kLargest = 1e9;

absl::StatusOr<double> ReadBounded(const JsonNode& json) {
  SHOAL_ASSIGN_OR_RETURN(const double number, json.Number());
  if (std::abs(number) <= kLargest) return number;  // false for not-a-number
  return json.Invalid(absl::StrCat(json.Text(), " must be from ", -kLargest, " to ", kLargest));
}

absl::StatusOr<Range> ReadTwo(const JsonNode& json) {
  if (json.size() != 2) {
    return json.Invalid(absl::StrCat("needs a list of two numbers, got ", json.Text()));
  }
  SHOAL_ASSIGN_OR_RETURN(const double a, ReadBounded(json.at(0)));
  SHOAL_ASSIGN_OR_RETURN(const double b, ReadBounded(json.at(1)));
  return Range{std::min(a, b), std::max(a, b)};
}

absl::StatusOr<Range> ReadRange(const JsonNode& json, const FactorRule& rule) {
  const auto fits = [&](double number) {
    return number <= rule.max && (rule.above_min ? number > rule.min : number >= rule.min);
  };
  Range range;
  bool right = false;
  if (json.is_array()) {
    SHOAL_ASSIGN_OR_RETURN(range, ReadTwo(json));
    right = rule.list_may_exceed ? range.low <= rule.max && range.high >= rule.min
                                 : fits(range.low) && fits(range.high);
  } else {
    SHOAL_ASSIGN_OR_RETURN(const double number, ReadBounded(json));
    range = {std::max(-std::abs(number), rule.min), std::abs(number)};
    right = fits(number);
  }
  if (right) return range;
  return json.Invalid(absl::StrCat(json.Text(), " must be ", rule.above_min ? "above " : "from ",
                                   rule.min, rule.above_min ? ", up to " : " to ", rule.max));
}

}  // namespace

Range ReadFactor(LayerOptions& options, const std::string& key, const FactorRule& rule) {
  return options.Take(ReadRange(options[key], rule));
}

Range ReadValueRange(LayerOptions& options) {
  const JsonNode json = options["value_range"];
  if (json.is_null()) return {0, 255};
  return options.Take(ReadTwo(json));
}

}  // namespace shoal
