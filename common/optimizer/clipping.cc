#include "common/optimizer/clipping.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/json/json_text.h"
#include "common/optimizer/sum_of_squares.h"
#include "common/optimizer/vectorize.h"

namespace shoal {
namespace {

SHOAL_VECTORIZED
void Scale(float* values, size_t size, float factor) {
  for (size_t i = 0; i < size; ++i) values[i] *= factor;
}

SHOAL_VECTORIZED
void Limit(float* values, size_t size, float limit) {
  for (size_t i = 0; i < size; ++i) values[i] = std::min(std::max(values[i], -limit), limit);
}

// The factor for a gradient of this norm. Not-a-number if the norm is.
float Factor(double norm, double limit) {
  return static_cast<float>(limit / std::max(norm, limit));
}

}  // namespace

void Clipping::Clip(const std::vector<std::span<float>>& gradients) const {
  if (kind == Kind::kNone) return;
  if (kind == Kind::kByGlobalNorm) {
    double squares = 0;
    for (const std::span<float> each : gradients) squares += SumOfSquares(each.data(), each.size());
    const double norm = std::sqrt(squares);
    const float factor =
        std::isfinite(norm) ? Factor(norm, limit) : std::numeric_limits<float>::quiet_NaN();
    for (const std::span<float> each : gradients) Scale(each.data(), each.size(), factor);
    return;
  }
  for (const std::span<float> each : gradients) {
    if (kind == Kind::kByValue) {
      Limit(each.data(), each.size(), static_cast<float>(limit));
    } else {
      const double norm = std::sqrt(SumOfSquares(each.data(), each.size()));
      Scale(each.data(), each.size(), Factor(norm, limit));
    }
  }
}

Clipping ReadClipping(KerasOptions& options) {
  constexpr struct {
    const char* key;
    Clipping::Kind kind;
  } kKeys[] = {{"clipvalue", Clipping::Kind::kByValue},
               {"clipnorm", Clipping::Kind::kByNorm},
               {"global_clipnorm", Clipping::Kind::kByGlobalNorm}};
  Clipping clipping;
  const char* given = nullptr;
  for (const auto& [key, kind] : kKeys) {
    const std::optional<double> limit =
        options.NumberOrNull(key, {}, {.min = 0, .max = 1e6, .above_min = true});
    if (!limit.has_value()) continue;
    if (given != nullptr) {
      options.given().errors()->Add(options.given().PathOf(key),
                                    absl::StrCat("is ", NumberText(*limit), ", together with ",
                                                 given, "; give one of the two"));
    }
    given = key;
    clipping = {.kind = kind, .limit = *limit};
  }
  return clipping;
}

}  // namespace shoal
