#include "common/optimizer/schedules/schedule.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/json/json_text.h"

namespace shoal {

using nlohmann::json;

Schedule ReadLearningRate(KerasOptions& options, double otherwise) {
  constexpr char kKey[] = "learning_rate";
  JsonObject& given = options.given();
  double rate = otherwise;
  const json* value = given.Find(kKey);
  if (value != nullptr && value->is_object()) {
    const json class_name = value->value("class_name", json("?"));
    given.errors()->AddUnimplemented(
        given.PathOf(kKey), absl::StrCat("is the schedule ", ShortJson(class_name),
                                         "; Shoal has no learning rate schedules, so this must "
                                         "be a number"));
  } else {
    given.ReadNumber(kKey, {.min = 0, .max = 1000, .above_min = true}, &rate);
  }
  options.Resolve(kKey, rate,
                  absl::StrCat("`learning_rate` (", NumberText(otherwise), "; above 0, to 1000)"));
  return [rate](double) { return rate; };
}

}  // namespace shoal
