#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/json/keras_object.h"
#include "common/optimizer/schedules/schedule.h"

// Every schedule, a line each: Keras's class. MakeCLASS stands in the file of its name.
#define SHOAL_SCHEDULES(SCHEDULE)  \
  SCHEDULE(ExponentialDecay)       \
  SCHEDULE(PiecewiseConstantDecay) \
  SCHEDULE(PolynomialDecay)        \
  SCHEDULE(InverseTimeDecay)       \
  SCHEDULE(CosineDecay)            \
  SCHEDULE(CosineDecayRestarts)

namespace shoal {

#define SHOAL_DECLARE_SCHEDULE(CLASS) Schedule Make##CLASS(KerasOptions&);
SHOAL_SCHEDULES(SHOAL_DECLARE_SCHEDULE)
#undef SHOAL_DECLARE_SCHEDULE

namespace {

#define SHOAL_SCHEDULE_LINE(CLASS) {#CLASS, Make##CLASS},
constexpr ScheduleType kScheduleTypes[] = {SHOAL_SCHEDULES(SHOAL_SCHEDULE_LINE)};
#undef SHOAL_SCHEDULE_LINE

}  // namespace

const ScheduleType* FindScheduleType(const std::string& class_name) {
  for (const ScheduleType& type : kScheduleTypes) {
    if (class_name == type.class_name) return &type;
  }
  return nullptr;
}

std::vector<std::string> ScheduleTypeNames() {
  std::vector<std::string> names;
  for (const ScheduleType& type : kScheduleTypes) names.emplace_back(type.class_name);
  return names;
}

std::vector<std::string> ScheduleDocs() {
  std::vector<std::string> rows;
  for (const ScheduleType& type : kScheduleTypes) {
    JsonErrors errors("");
    KerasOptions options(KerasObject{}, &errors);
    type.make(options);
    rows.push_back(absl::StrCat("| `", type.class_name, "` | ",
                                absl::StrJoin(options.descriptions(), ", "), " |"));
  }
  return rows;
}

}  // namespace shoal
