#include "common/loss/overlap_axes.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace shoal {

using nlohmann::json;

std::vector<int64_t> ReadOverlapAxes(KerasOptions& options) {
  constexpr int64_t kMaxAxes = 8;
  const json* given = options.given().Find("axis");
  std::vector<int64_t> axes;
  const auto add = [&](const json& value) {
    const bool fits = value.is_number_integer() && value >= -kMaxAxes && value < kMaxAxes;
    if (fits) axes.push_back(value.get<int64_t>());
    return fits;
  };
  if (given != nullptr && !given->is_null()) {
    bool fits = !given->is_array() || (!given->empty() && given->size() <= kMaxAxes);
    for (const json& value : given->is_array() ? *given : json::array({*given})) {
      fits = fits && add(value);
    }
    if (!fits) {
      options.given().AddWrong("axis", *given, "null, the number of an axis, or a list of some");
      axes.clear();
    }
  }
  options.Resolve("axis", axes.empty() ? json() : json(axes), "`axis` (null; axes to sum along)");
  return axes;
}

Expression SumAlong(Expression x, const std::vector<int64_t>& axes) {
  if (x.id == kNoValue) return x;
  const auto rank = static_cast<int64_t>(x.shape().size());
  std::vector<int> counted;
  for (const int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      x.context->Fail(absl::InvalidArgumentError(
          absl::StrCat("the loss sums along axis ", axis, ", which predictions of shape ",
                       ShapeToString(x.shape()), " lack: $.loss.config.axis")));
      return {x.context, kNoValue};
    }
    counted.push_back(static_cast<int>(axis < 0 ? axis + rank : axis));
  }
  return SumOver(x, counted);
}

}  // namespace shoal
