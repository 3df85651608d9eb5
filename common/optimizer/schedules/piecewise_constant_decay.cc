// Keras's PiecewiseConstantDecay (keras/src/optimizers/schedules/learning_rate_schedule.py):
//   values[i] for the first i with updates <= boundaries[i], the last value after all of them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/json/json_text.h"
#include "common/optimizer/schedules/schedule.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr size_t kMaxBoundaries = 10'000;

// Reads a list of numbers in `range`; empty after an error.
std::vector<double> ReadNumbers(KerasOptions& options, const char* key, const char* meaning,
                                NumberRange range, const std::string& description) {
  JsonObject& given = options.given();
  std::vector<double> numbers;
  const json* value = given.Require(key, meaning);
  const bool list = value != nullptr && value->is_array() && !value->empty() &&
                    value->size() <= kMaxBoundaries + 1;
  if (list) {
    for (const json& number : *value) {
      const bool right = number.is_number() && number >= range.min && number <= range.max;
      if (right) numbers.push_back(number.get<double>());
    }
  }
  if (value != nullptr && (!list || numbers.size() != value->size())) {
    given.AddWrong(key, *value,
                   absl::StrCat("a list of numbers from ", NumberText(range.min), " to ",
                                NumberText(range.max), ", at most ", kMaxBoundaries));
    numbers.clear();
  }
  options.Resolve(key, numbers, description);
  return numbers;
}

}  // namespace

Schedule MakePiecewiseConstantDecay(KerasOptions& options) {
  const std::vector<double> boundaries =
      ReadNumbers(options, "boundaries", "after which updates the rate changes", kUpdates,
                  "`boundaries` (required; rising numbers of updates)");
  const std::vector<double> values =
      ReadNumbers(options, "values", "the rates, one more than boundaries", kScheduledRate,
                  "`values` (required; one more than boundaries, each 0 to 1000)");
  JsonObject& given = options.given();
  if (!std::is_sorted(boundaries.begin(), boundaries.end())) {
    given.AddWrong("boundaries", boundaries, "rising");
  }
  const bool complete = !boundaries.empty() && !values.empty();
  if (complete && values.size() != boundaries.size() + 1) {
    given.AddWrong(
        "values", values,
        absl::StrCat("a list of ", boundaries.size() + 1, " numbers, one more than boundaries"));
  }
  return [=](double updates) {
    const auto found = std::lower_bound(boundaries.begin(), boundaries.end(), updates);
    return values[found - boundaries.begin()];
  };
}

}  // namespace shoal
