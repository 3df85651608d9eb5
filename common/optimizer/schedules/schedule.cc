#include "common/optimizer/schedules/schedule.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/json/json_text.h"
#include "common/optimizer/schedules/schedule_table.h"

namespace shoal {

using nlohmann::json;

Schedule ReadLearningRate(KerasOptions& options, double otherwise) {
  constexpr char kKey[] = "learning_rate";
  JsonObject& given = options.given();
  double rate = otherwise;
  Schedule schedule;  // invalid after an error
  json resolved;
  const json* value = given.Find(kKey);
  if (value != nullptr && value->is_object()) {
    auto read = ScheduleTable().Read(*value, given.PathOf(kKey), given.errors());
    if (read.has_value()) {
      schedule = std::move(read->made);
      resolved = std::move(read->canonical);
    }
  } else {
    given.ReadNumber(kKey, {.min = 0, .max = 1000, .above_min = true}, &rate);
    schedule = [rate](double) { return rate; };
    resolved = rate;
  }
  options.Resolve(kKey, resolved,
                  absl::StrCat("`learning_rate` (", NumberText(otherwise),
                               "; above 0, to 1000, or a schedule)"));
  return schedule;
}

}  // namespace shoal
