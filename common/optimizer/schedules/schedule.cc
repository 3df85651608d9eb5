#include "common/optimizer/schedules/schedule.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/json/json_text.h"
#include "common/json/keras_object.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr char kKey[] = "learning_rate";

// Resolves to the schedule's Keras config. After an error the schedule is not to be used.
Schedule ReadSchedule(const json& value, JsonObject& given, json* resolved) {
  KerasObject object;
  if (!ReadKerasObject(value, given.PathOf(kKey), given.errors(), &object)) return nullptr;
  const ScheduleType* const type = FindScheduleType(object.class_name);
  if (type == nullptr) {
    given.errors()->AddUnimplemented(
        object.name_path, absl::StrCat("is ", ShortJson(object.class_name),
                                       ", a learning rate schedule that Shoal lacks",
                                       SuggestName(object.class_name, ScheduleTypeNames())));
    return nullptr;
  }
  KerasOptions options(object, given.errors());
  Schedule schedule = type->make(options);
  options.Ignore("name");
  options.RejectUnknown();
  *resolved = {{"class_name", type->class_name}, {"config", options.resolved()}};
  return schedule;
}

}  // namespace

Schedule ReadLearningRate(KerasOptions& options, double otherwise) {
  double rate = otherwise;
  Schedule schedule;
  json resolved;
  const json* value = options.given().Find(kKey);
  if (value != nullptr && value->is_object()) {
    schedule = ReadSchedule(*value, options.given(), &resolved);
  } else {
    options.given().ReadNumber(kKey, {.min = 0, .max = 1000, .above_min = true}, &rate);
    schedule = [rate](double) { return rate; };
    resolved = rate;
  }
  options.Resolve(kKey, resolved,
                  absl::StrCat("`learning_rate` (", NumberText(otherwise),
                               "; above 0, to 1000, or a schedule)"));
  return schedule;
}

}  // namespace shoal
